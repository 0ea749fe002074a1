"""Workers on the twins in virtual time, with engines that do what a test tells them. Nothing fails by itself here."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, cast

from axon.adapters.live.memory.live import open_memory_live
from axon.adapters.queue.memory import MemoryBroker, MemoryQueue
from axon.dispatch.affinity import Affinity, Residences
from axon.dispatch.config import DispatchConfig
from axon.dispatch.dispatch import work_channel
from axon.dispatch.hint import encode_hint, hint_of
from axon.domain.fairness.lane import lane_names
from axon.domain.job import Job
from axon.domain.log.chunk import Chunk
from axon.domain.model.served_version import ServedVersion
from axon.domain.presence import Presence
from axon.domain.sampling import Sampling
from axon.domain.turn import Turn
from axon.domain.wire import encode
from axon.engine.protocol.messages import Add, Emitted, Ready, StepOutput
from axon.ownership.ending import Ending, Settle
from axon.telemetry.metrics import Metrics
from axon.text.tokenizer import ByteTokenizer
from axon.worker.config import WorkerConfig
from axon.worker.peers.presence import Announcer
from axon.worker.worker import Worker
from tests.contracts.builders import make_job
from tests.sim.loop import SimLoop

DEPLOYMENT = "small"
NUM_LANES = 2
STEP_S = 0.05
METRICS = Metrics()


def token_at(seed: int, position: int) -> int:
    """The one right token of a job at a position."""
    return 32 + (seed * 31 + position * 17) % 90


class StubEngine:
    """One token a step for each sequence; what its world says of a seed, happens in a step with it."""

    def __init__(self, world: "World", owners: Sequence[str]) -> None:
        self._world, self._owners = world, owners
        self._sequences: dict[str, tuple[Add, int]] = {}
        self._work = asyncio.Event()
        self._is_alive = True
        self.pid = None
        self.in_step: frozenset[str] = frozenset()

    async def open(self, *, timeout_s: float) -> Ready:
        await asyncio.sleep(self._world.start_s)
        self._world.num_engines += 1
        self._world.engines[tuple(self._owners)] = self
        slots = self._world.slots
        return Ready(kernel="stub", max_model_len=1000, max_sequences=slots, num_blocks=1, block_size=1)

    async def outputs(self) -> AsyncIterator[StepOutput]:
        while self._is_alive:
            if not self._sequences:
                self._work.clear()
                await self._work.wait()
                continue
            yield await self._step()

    async def _step(self) -> StepOutput:
        starved = {seed for owner, seed in self._world.starved if owner in ("", *self._owners)}
        waiting = [id for id, (add, _) in self._sequences.items() if add.seed in starved]
        inside = {id: entry for id, entry in self._sequences.items() if id not in waiting}
        self.in_step = frozenset(inside)
        fates = {self._world.fates.get(add.seed) for add, _ in inside.values()}
        await asyncio.sleep(STEP_S)
        if "hang" in fates:
            while self._is_alive:
                self._work.clear()
                await self._work.wait()
        if "crash" in fates:
            self.kill()
        if not self._is_alive:
            return StepOutput()
        return StepOutput(emitted=[self._emit(*entry) for entry in inside.values()], waiting=waiting)

    def _emit(self, add: Add, position: int) -> Emitted:
        token = token_at(add.seed, position)
        if position + 1 >= add.sampling.max_tokens:
            self._sequences.pop(add.id, None)  # it may have been aborted during the step
            return Emitted(add.id, token, "length")
        if add.id in self._sequences:
            self._sequences[add.id] = (add, position + 1)
        return Emitted(add.id, token)

    def add(self, sequence: Add) -> None:
        self._sequences[sequence.id] = (sequence, len(sequence.output_ids))
        self._work.set()

    def erase(self, sessions: list[str]) -> None:
        pass

    def abort(self, ids: list[str]) -> None:
        for sequence_id in ids:
            self._sequences.pop(sequence_id, None)

    async def profile(self, kind: str, seconds: float) -> bytes:
        raise NotImplementedError

    def kill(self) -> None:
        self._is_alive = False
        self._work.set()

    async def aclose(self) -> None:
        self.kill()


class Kept:
    """The ended turns."""

    def __init__(self) -> None:
        self.turns: dict[str, Turn] = {}

    async def append(self, turns: Sequence[Turn]) -> None:
        for turn in turns:
            if not turn.state.terminal:
                continue  # what it has said so far
            assert turn.id not in self.turns, f"{turn.id} ended twice"
            self.turns[turn.id] = turn

    async def get(self, turn_id: str) -> Turn | None:
        return self.turns.get(turn_id)


class World:
    """``run`` a coroutine function in it; workers are started by it and closed after it."""

    def __init__(self, *, slots: int = 4, config: WorkerConfig | None = None) -> None:
        self.slots, self.config = slots, config or WorkerConfig()
        self.fates: dict[int, str] = {}
        """``crash`` or ``hang``: what a step with a sequence of this seed does."""
        self.starved: set[tuple[str, int]] = set()
        """Seeds whose sequences find no blocks, at a worker or, without a name, anywhere."""
        self.start_s = 0.2
        """Seconds that an engine takes to start."""
        self.num_engines = 0
        self.engines: dict[tuple[str, ...], StubEngine] = {}
        """The engine that was last started for each worker."""
        self.loop = SimLoop()
        self.live = open_memory_live(self.loop, retention_s=3600.0)
        self.broker = MemoryBroker(clock=self.loop)
        self.broker.declare(lane_names(DEPLOYMENT, NUM_LANES))
        self.kept = Kept()
        self.settle: Settle = _settle
        self._gateway = self.broker.connect()
        self._dead: set[str] = set()
        self._closing: list[asyncio.Future[None]] = []
        self._running: dict[Worker, tuple[asyncio.Task[None], MemoryQueue]] = {}

    def run(self, story: Callable[[], Awaitable[None]]) -> None:
        async def told() -> None:
            await self._gateway.open()
            async with asyncio.timeout(3600):
                await story()
            for worker in list(self._running):
                await self.stop(worker)

        self.loop.run(told())

    async def start(self, *, version: str = "", **options: Any) -> Worker:
        """One more worker, at work; without a version it runs everything."""
        queue = self.broker.connect()
        await queue.open()
        owners: list[str] = []
        worker = Worker(
            deployment=DEPLOYMENT,
            num_lanes=NUM_LANES,
            queue=queue,
            live=self.live,
            turns=cast("Any", self.kept),
            ending=Ending(cast("Any", self.kept), self.settle, self.loop),
            journal=cast("Any", self.kept),
            tokenizer=ByteTokenizer(),
            make_engine=lambda: StubEngine(self, owners),
            config=self.config,
            reader_grace_s=1e6,
            clock=self.loop,
            metrics=METRICS,
            **options,
        )
        owners.append(worker.identity.incarnation)
        await worker.open()
        worker.identity.version = version
        self._running[worker] = (
            asyncio.get_running_loop().create_task(self._work(worker, options.get("name", ""))),
            queue,
        )
        return worker

    async def _work(self, worker: Worker, name: str) -> None:
        deployment = ServedVersion(
            name=DEPLOYMENT, version=worker.identity.version or "v1", max_model_len=1000, created=0.0
        )

        def presence() -> Presence:
            return Presence(
                worker=name or worker.identity.incarnation,
                incarnation=worker.identity.incarnation,
                deployment=deployment,
                load=worker.load,
                at=self.loop.now(),
            )

        announcer = Announcer(self.live.presences, presence, every_s=1.0, clock=self.loop)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(worker.run())
                tasks.create_task(announcer.run())
        finally:
            if worker.identity.incarnation not in self._dead:
                await announcer.leave()

    async def stop(self, worker: Worker) -> None:
        """As its process does at its end."""
        task, queue = self._running.pop(worker)
        task.cancel()
        await asyncio.wait([task])
        await worker.aclose()
        await queue.aclose()

    def lose_connection(self, worker: Worker) -> None:
        """The worker lives, and what it holds returns to the queue."""
        _, queue = self._running[worker]
        for delivery in reversed(queue._unacked.values()):
            self.broker.put_first(delivery)
        queue._unacked.clear()

    def kill(self, worker: Worker) -> None:
        """It is gone without a word; what it held returns to the queue."""
        task, queue = self._running.pop(worker)
        self._dead.add(worker.identity.incarnation)
        task.cancel()
        self._closing.append(asyncio.ensure_future(queue.aclose()))

    async def ask(
        self,
        *,
        seed: int,
        max_tokens: int = 10,
        own: str = "",
        dispatched: bool = False,
        reader_ttl_s: float | None = None,
        **changes: Any,
    ) -> Job:
        """An accepted job: in its lane, in a worker's own one, or where the dispatch puts it."""
        job = make_job(
            f"turn_{seed}",
            seed=seed,
            sampling=Sampling(max_tokens=max_tokens),
            deadline=self.loop.now() + 3000.0,
            created=self.loop.now(),
            **changes,
        )
        await self.live.log.open(job.id, encode(job), reader_ttl_s=reader_ttl_s)
        if own:
            assert self.broker.offer(own, job.lane, encode(job))
        elif dispatched:
            own = await self.affinity().offer(job, encode(job)) or ""
        if not own:
            self.publish(job)
        await self.live.wakeups.notify(work_channel(DEPLOYMENT), encode_hint(hint_of(job, own)))
        return job

    def affinity(self) -> Affinity:
        """As a gateway that has just come up has it."""
        return Affinity(
            residences=Residences(self.live.cache, ttl_s=600.0),
            presences=self.live.presences,
            own_lanes=cast("Any", self._gateway),
            config=DispatchConfig(num_lanes=NUM_LANES),
            clock=self.loop,
        )

    def publish(self, job: Job) -> None:
        self.broker.publish(job.lane, encode(job))

    @property
    def num_unacked(self) -> int:
        """Deliveries that workers hold."""
        return sum(len(queue._unacked) for _, queue in self._running.values())

    def engine_of(self, worker: Worker) -> StubEngine:
        """The worker's present engine."""
        return self.engines[worker.identity.incarnation,]

    async def known(self, num_workers: int) -> None:
        """So many workers have announced themselves."""
        while len(await self.live.presences.all(DEPLOYMENT)) < num_workers:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.01)

    async def settled(self) -> None:
        """Long enough for every worker to have announced what it has."""
        await asyncio.sleep(0.5)

    async def until(self, true: Callable[[], object]) -> None:
        while not true():  # noqa: ASYNC110 - virtual time costs nothing
            await asyncio.sleep(0.01)

    async def chunks(self, job: Job) -> tuple[Chunk, ...]:
        view = await self.live.log.read(job.id, after=0)
        assert view is not None
        return view.chunks

    async def num_tokens(self, job: Job) -> int:
        return sum(len(chunk.tokens) for chunk in await self.chunks(job))

    def check(self, job: Job) -> None:
        """It ended well, with each token once and right."""
        turn = self.kept.turns[job.id]
        right = [token_at(job.seed, position) for position in range(job.sampling.max_tokens)]
        assert ([token.id for token in turn.tokens], turn.state) == (right, "completed")
        ledger = turn.ledger
        assert ledger is not None
        assert ledger.billed == job.num_prompt_tokens + len(right)
        times_s = ledger.queue_s + ledger.prefill_s + ledger.decode_s + ledger.replay_s
        assert abs(times_s - (turn.ended_at or 0.0) + job.created) < 10.0, "the end is written soon after it is told"


async def _settle(job: Job, tokens: int) -> None:
    pass
