"""What a long answer has said so far is written down now and then, and the next attempt goes on from there."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from axon.adapters.live.memory.live import open_memory_live
from axon.adapters.queue.memory import MemoryBroker
from axon.domain.job import Job
from axon.domain.log.chunk import Chunk, Token
from axon.domain.turn import Turn, TurnState, ended, opened, so_far
from axon.domain.wire import encode
from axon.engine.protocol.messages import Emitted
from axon.errors import DependencyDown
from axon.ownership.ending import Ending
from axon.ownership.liveness import Liveness
from axon.ports.live import Live
from axon.ports.queue import Delivery
from axon.runtime.clock import SystemClock
from axon.telemetry.metrics import Metrics
from axon.text.tokenizer import ByteTokenizer
from axon.worker.claims import Claims
from axon.worker.config import WorkerConfig
from axon.worker.job.hands import Hands
from axon.worker.job.progress import Progress
from axon.worker.job.running import Running
from axon.worker.job.trials import Trials
from axon.worker.lease import LoopLease
from tests.contracts.builders import claim_epoch, make_job

TOKENIZER = ByteTokenizer()
CLOCK = SystemClock()


@dataclass
class Journal:
    """Keeps what it is told, or is away."""

    records: list[Turn] = field(default_factory=list)
    away: bool = False

    async def append(self, turns: Sequence[Turn]) -> None:
        if self.away:
            raise DependencyDown()
        self.records += turns

    async def barrier(self, *, timeout_s: float) -> None:
        """Nothing is on its way."""


def make_running(*, choices: int = 1, forget: bool = False) -> Running:
    job = make_job(choices=choices, forget=forget)
    delivery = Delivery(tag=1, lane=job.lane, body=encode(job), redelivered=False)
    return Running(job=job, delivery=delivery, epoch=1, tokenizer=TOKENIZER)


def in_hands(*running: Running) -> Hands:
    hands = Hands(Trials(strike_limit=2))
    for each in running:
        hands.take(each)
    return hands


def say(running: Running, text: str, *, heard: int) -> None:
    """The engine says it, and the log has the first ``heard`` tokens of all."""
    for choice in running.choices:
        for byte in text.encode():
            running.push(choice, Emitted("", byte, None))
    running.sent = heard


def ids_of(turn: Turn) -> list[int]:
    return [token.id for token in turn.tokens]


async def test_what_the_log_has_is_written_and_no_more() -> None:
    running, journal = make_running(), Journal()
    progress = Progress(in_hands(running), journal, every_s=1)
    await progress.write()
    say(running, "abcdef", heard=4)
    await progress.write()
    (turn,) = journal.records
    assert (turn.id, turn.state, ids_of(turn)) == (running.job.id, TurnState.OPENED, list(b"abcd"))
    assert turn.usage.output_tokens == 4


async def test_an_answer_that_is_younger_than_the_pause_is_not_written() -> None:
    running, journal = make_running(), Journal()
    say(running, "abc", heard=3)
    await Progress(in_hands(running), journal, every_s=1).write()
    assert not journal.records


async def test_nothing_is_written_twice_and_every_more_is() -> None:
    running, journal = make_running(), Journal()
    progress = Progress(in_hands(running), journal, every_s=1)
    for heard in (0, 2, 2, 5, 5):
        say(running, "ab" if heard == 2 else "abc", heard=heard)
        await progress.write()
    assert [len(turn.tokens) for turn in journal.records] == [2, 5]


async def test_neither_an_end_nor_what_is_to_be_kept_nowhere_is_written() -> None:
    ending, secret, journal = make_running(), make_running(forget=True), Journal()
    progress = Progress(in_hands(ending, secret), journal, every_s=1)
    await progress.write()
    for each in (ending, secret):
        say(each, "abc", heard=3)
    ending.end(TurnState.CANCELLED)
    await progress.write()
    assert not journal.records


async def test_a_journal_that_is_away_is_told_more_the_next_time() -> None:
    running, journal = make_running(), Journal(away=True)
    progress = Progress(in_hands(running), journal, every_s=1)
    await progress.write()
    say(running, "ab", heard=2)
    await progress.write()
    journal.away = False
    say(running, "cd", heard=4)
    await progress.write()
    assert [len(turn.tokens) for turn in journal.records] == [4]


class Turns:
    """A store of one turn."""

    def __init__(self, turn: Turn | None) -> None:
        self._turn = turn

    async def get(self, turn_id: str) -> Turn | None:
        return self._turn if self._turn is not None and self._turn.id == turn_id else None


def chunk_of(text: bytes, *, epoch: int = 0, terminal: str = "") -> Chunk:
    return Chunk(first=1, epoch=epoch, tokens=tuple(Token(0, byte, chr(byte)) for byte in text), terminal=terminal)


async def taken(job: Job, live: Live, stored: Turn | None) -> Running | None:
    """What a worker that takes the job makes of it."""
    broker = MemoryBroker()
    broker.declare([job.lane])
    broker.publish(job.lane, encode(job))
    queue = broker.connect()
    await queue.open()
    delivery = await queue.take([job.lane])
    assert delivery is not None

    async def settle(_job: Job, _tokens: int) -> None:
        """Nothing was set aside."""

    liveness = Liveness(live.leases, CLOCK, lease_s=1.5)
    claims = Claims(
        "worker-2",
        LoopLease("worker-2", live.leases, liveness, WorkerConfig(), CLOCK),
        liveness,
        TOKENIZER,
        CLOCK,
        queue=queue,
        live=live,
        turns=Turns(stored),  # type: ignore[arg-type]
        ending=Ending(Journal(), settle, CLOCK),
        reader_grace_s=30,
        checkpoint_s=1.0,
        metrics=Metrics(),
    )
    claimed = await claims.claim(job, delivery)
    assert claimed is None or isinstance(claimed, Running)
    return claimed


@pytest.fixture
def live() -> Live:
    return open_memory_live(CLOCK, retention_s=60)


async def test_an_answer_whose_log_is_lost_goes_on_from_what_was_written(live: Live) -> None:
    job = replace(make_job(), deadline=CLOCK.now() + 60)
    running = await taken(job, live, so_far(job, chunk_of(b"abc")))
    assert running is not None
    assert running.choices[0].token_ids == list(b"abc")
    pending = running.pending()
    assert pending is not None
    assert (pending.first, [token.id for token in pending.tokens]) == (1, list(b"abc"))


async def test_an_answer_that_was_queued_again_goes_on_from_what_was_written(live: Live) -> None:
    """As after a power cut: its stream was made anew before anybody took it."""
    job = replace(make_job(), deadline=CLOCK.now() + 60, created=CLOCK.now() - 10)
    await live.log.open(job.id, encode(job), reader_ttl_s=30)
    running = await taken(job, live, so_far(job, chunk_of(b"abc")))
    assert running is not None
    assert running.choices[0].token_ids == list(b"abc")


@pytest.mark.parametrize(
    ("logged", "written", "expected"),
    [
        (b"ab", b"abcd", b"abcd"),  # the log lost its tail
        (b"abcd", b"ab", b"abcd"),  # the usual case
        (b"ax", b"abcd", b"ax"),  # another attempt went another way: readers follow the log
    ],
)
async def test_the_log_counts_unless_it_lost_what_was_written(
    live: Live, logged: bytes, written: bytes, expected: bytes
) -> None:
    job = replace(make_job(), deadline=CLOCK.now() + 60)
    await live.log.open(job.id, encode(job), reader_ttl_s=30)
    epoch = await claim_epoch(live.log, job.id, "worker-1", over=0)
    await live.log.append([(job.id, chunk_of(logged, epoch=epoch))])
    running = await taken(job, live, so_far(job, chunk_of(written)))
    assert running is not None
    assert running.choices[0].token_ids == list(expected)
    assert running.sent == len(logged)


async def test_an_answer_that_has_ended_is_not_made_again(live: Live) -> None:
    job = replace(make_job(), deadline=CLOCK.now() + 60)
    end = ended(opened(job), (chunk_of(b"abc", terminal="completed"),), at=CLOCK.now())
    assert await taken(job, live, end) is None
