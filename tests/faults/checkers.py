"""What must hold whatever broke: over what clients were told, what the store holds, and what was left behind."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass

import httpx

from axon.domain.turn import Turn, TurnState
from tests.faults.forms import wrong_form
from tests.faults.history import History, Told
from tests.faults.stage import Stage
from tests.faults.transcript import transcript
from tests.services.process import wait_for

HANGS_S = 15.0
"""A request is answered within it, if only with a 503."""
_SETTLE_S = 90.0
_MORE_FDS = 80
"""Pools may grow to 8 connections to the store and 64 to the live service; a leak grows with every request."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise not kept: ``lost``, ``repeated``, ``gap``, ``text``, ``billed``, ``form``, ``foreign``, ``hung`` or
    ``left``."""

    kind: str
    what: str


def check_told(history: History, *, hangs: bool = False) -> list[Violation]:
    """Every accepted turn was told whole, once, in order; whoever was refused was told when to come back."""
    if not history.accepted:
        return [Violation("lost", "nothing was accepted")]
    rules: list[tuple[str, str, Callable[[Told], object]]] = [
        ("lost", "went wrong", lambda told: told.error),
        ("lost", "was never answered", lambda told: not told.stream_id or told.ended_at is None),
        ("text", "differs from the undisturbed answer", lambda told: _differs(history, told)),
        ("repeated", "has seqs that repeat", lambda told: _seqs(history, told) < 0),
        ("gap", "has seqs that skip", lambda told: _seqs(history, told) > 0),
        ("repeated", "did not end exactly once", lambda told: _ends_wrong(history, told)),
        ("billed", "counts other tokens than were told", lambda told: _counts_wrong(history, told)),
        ("form", "is not of the form that was asked for", lambda told: wrong_form(history.asks[told.ask], told)),
    ]
    if not hangs:
        rules.append(("hung", f"hung for more than {HANGS_S:g} s", lambda told: told.slowest_answer_s > HANGS_S))
    return [
        Violation(kind, f"{what}: {brief(told)}")
        for kind, what, wrong in rules
        for told in history.turns
        if wrong(told)
    ]


def read_store(stage: Stage, history: History) -> tuple[list[Turn], list[Violation]]:
    """The store's rows, once the journal has brought every accepted turn and every turn in the store has ended."""
    accepted = {told.stream_id for told in history.accepted}

    def all_ended() -> bool:
        ranks = stage.place.ranks()
        return accepted <= ranks.keys() and all(ranks.values())

    try:
        wait_for(all_ended, "every accepted turn is in the store and has ended", _SETTLE_S)
    except TimeoutError:
        ranks = stage.place.ranks()
        lost = [f"accepted and lost: {each}" for each in sorted(accepted - ranks.keys())]
        open_ones = [f"accepted and not ended: {each}" for each, rank in ranks.items() if not rank]
        return stage.place.turns(), [Violation("lost", what) for what in lost + open_ones]
    return stage.place.turns(), []


def check_stored(history: History, turns: Iterable[Turn], condemned: Mapping[str, str]) -> list[Violation]:
    """Every accepted turn is there once, completed, with the text that its client has and a bill for just that.

    What a client was refused, or never heard of, may be there as well; it has ended too, and said nothing wrong.
    ``condemned`` turns end with a code of failure, by id.
    """
    found: list[Violation] = []
    turns = list(turns)
    for ids, what in (
        ([told.stream_id for told in history.accepted], "two asks led to one turn"),
        ([turn.id for turn in turns], "is in the store twice"),
        (
            [
                f"{turn.tenant}/{key}"
                for turn in turns
                if turn.state.name == "COMPLETED" and (key := turn.job.idempotency_key)
            ],
            "was answered twice under one key",
        ),
    ):
        found += [Violation("repeated", f"{what}: {each}") for each, count in Counter(ids).items() if count > 1]
    by_id = {told.stream_id: told for told in history.accepted}
    answers = {ask.texts for ask in history.asks.values()}
    for turn in turns:
        found += _wrong_turn(turn, by_id.get(turn.id), answers, condemned.get(turn.id))
    return found


def check_pieces(history: History, turns: Iterable[Turn]) -> list[Violation]:
    """Every frame of a stream brought its reader exactly to the text of the tokens up to its seq: no delta is missing,
    and none came twice. Events of responses are numbered by themselves, and their reader counts them."""
    by_id = {turn.id: turn for turn in turns}
    found = []
    for told in history.accepted:
        turn = by_id.get(told.stream_id)
        if turn is None or told.kind == "waiter" or history.asks[told.ask].route == "/v1/responses":
            continue
        if seq := _first_wrong(told, turn):
            found.append(Violation("gap", f"has another text at seq {seq} than the tokens have: {brief(told)}"))
    return found


def _first_wrong(told: Told, turn: Turn) -> int:
    """The seq of the first piece after which a choice's text is not that of its tokens; 0 if there is none."""
    texts = dict.fromkeys(range(turn.job.choices), "")
    for piece in told.pieces:
        texts[piece.choice] += piece.text
        tokens = [token for token in turn.tokens[: piece.seq] if token.choice == piece.choice]
        if texts[piece.choice] != transcript(tokens):
            return piece.seq
    return 0


def _wrong_turn(
    turn: Turn, told: Told | None, answers: set[tuple[str, ...]], condemned: str | None
) -> Iterable[Violation]:
    texts = _texts(turn)
    if turn.usage.output_tokens != len(turn.tokens):
        yield Violation("billed", f"{turn.id} has {len(turn.tokens)} tokens and is billed {turn.usage.output_tokens}")
    delivered = len(turn.tokens) + (0 if _unbegun(turn) else turn.job.num_prompt_tokens)
    if turn.ledger is not None and turn.ledger.billed != delivered:
        yield Violation("billed", f"{turn.id} has {delivered} tokens and its ledger says {turn.ledger}")
    elif turn.ledger is None and turn.state is TurnState.COMPLETED:
        yield Violation("billed", f"{turn.id} was answered and has no ledger")
    if condemned is not None:
        if (turn.state, turn.code) != (TurnState.FAILED, condemned):
            yield Violation("lost", f"{turn.id} should have failed with {condemned} and is {turn.state} {turn.code}")
    elif turn.state is TurnState.COMPLETED:
        if texts not in answers:
            yield Violation("text", f"{turn.id} says what nobody asked for")
    elif turn.state is not TurnState.CANCELLED:
        yield Violation("lost", f"{turn.id} is {turn.state} {turn.code}")
    elif not any(_begins(answer, texts) for answer in answers):
        yield Violation("text", f"{turn.id} was cancelled and says what nobody asked for")
    if told is None:
        return
    if turn.state is not TurnState.COMPLETED and not told.error:
        yield Violation("lost", f"{turn.id} was told whole and is {turn.state}")
    elif texts != tuple(told.text(choice) for choice in range(turn.job.choices)):
        yield Violation("text", f"{turn.id} is stored with another text than was told")
    if [turn.usage.output_tokens] != told.usage:
        yield Violation("billed", f"{turn.id} is billed {turn.usage.output_tokens}, told {told.usage}")
    if turn.tenant != told.tenant:
        yield Violation("foreign", f"{turn.id} of {turn.tenant} was told to {told.tenant}")


def _unbegun(turn: Turn) -> bool:
    """Whether it was cancelled before a worker began it, as a turn is that its queue did not take: it costs nothing."""
    return (
        turn.state is TurnState.CANCELLED and not turn.tokens and turn.ledger is not None and not turn.ledger.attempts
    )


def check_foreign(stage: Stage, history: History) -> list[Violation]:
    """Nobody reads a stranger's stream, and nobody hears whether there is one."""
    found = []
    for told in history.accepted[:5]:
        stranger = next(key for tenant, key in stage.keys.items() if tenant != told.tenant)
        answers = [
            httpx.get(
                f"{stage.fleet.gateways[0].url}/v1/streams/{stream_id}",
                headers={"Authorization": f"Bearer {stranger}"},
                timeout=HANGS_S,
            ).status_code
            for stream_id in (told.stream_id, "cmpl-unknown")
        ]
        if answers != [404, 404]:
            found.append(Violation("foreign", f"{told.stream_id} of {told.tenant} answers a stranger with {answers}"))
    return found


def check_nothing_left(stage: Stage, *, forgets: bool = False, but: Set[str] = frozenset()) -> list[Violation]:
    """No message waits or is held, no block is used, no ticket is out, leases are those of who lives, and everything
    in the live service goes by itself.

    Where the live service ``forgets`` its last words, a ticket may be out again that was given back, until its time;
    ``but`` are such ones of before.
    """
    place, fleet = stage.place, stage.fleet
    living = {worker.incarnation for worker in fleet.workers if worker.alive}
    found: list[Violation] = []

    def settled(true: Callable[[], object], what: str, timeout_s: float, look: Callable[[], object]) -> None:
        try:
            wait_for(true, what, timeout_s)
        except TimeoutError:
            found.append(Violation("left", f"{what}: {look()}"))

    settled(lambda: not place.messages(), "the queues are empty and nothing is held", _SETTLE_S, place.messages)
    settled(lambda: place.leases() == living, "the leases are those of the living", 60.0, place.leases)
    ended = {turn_id for turn_id, rank in place.ranks().items() if rank} - but
    if not forgets:
        settled(
            lambda: not place.tickets() & ended, "no ended turn has a ticket", 60.0, lambda: place.tickets() & ended
        )
    settled(lambda: not place.lasting_keys(), "no key stays for ever", 60.0, place.lasting_keys)
    for process in fleet.workers or fleet.processes:
        for metric in ("axon_requests_running", r'axon_kv_blocks\{.*state="used"\}'):
            settled(lambda: process.metric(metric) == 0, f"{metric} is 0", 60.0, lambda: process.metric(metric))  # noqa: B023
    for process in fleet.processes:
        limit = stage.base_fds.get(process.name, 0) + _MORE_FDS
        what = f"at most {limit} descriptors of {process.name}"
        settled(lambda: process.num_fds <= limit, what, 60.0, lambda: process.num_fds)  # noqa: B023
    return found


def brief(told: Told) -> str:
    """A turn on one line."""
    return (
        f"client {told.client} {told.kind} {told.stream_id or 'refused'} {told.ask} at {told.seq}, "
        f"done {told.num_done}, finish {told.finishes}, usage {told.usage}, "
        f"waited {told.slowest_answer_s:.1f} s, error {told.error!r}, losses {told.losses[-3:]}, "
        f"refusals {told.refusals[-3:]}"
    )


def _differs(history: History, told: Told) -> bool:
    texts = history.asks[told.ask].texts
    return texts != tuple(told.text(choice) for choice in range(len(texts)))


def _ends_wrong(history: History, told: Told) -> bool:
    return told.num_done != 1 or len(told.finishes) != history.asks[told.ask].num_choices


def _counts_wrong(history: History, told: Told) -> bool:
    """Whether usage was not told once; and where one character is one token, whether it is not as long as the text."""
    return told.usage != [told.seq] if not history.asks[told.ask].structured else len(told.usage) != 1


def _seqs(history: History, told: Told) -> int:
    """One character is one token, so each piece's seq is the length of all text up to its end; how far it is off.

    Tokens of a form need not have a text, so its pieces are compared with the stored tokens instead.
    """
    if history.asks[told.ask].structured:
        return 0
    length = 0
    for piece in told.pieces:
        length += len(piece.text)
        if piece.seq != length:
            return piece.seq - length
    return 0


def _texts(turn: Turn) -> tuple[str, ...]:
    return tuple(
        transcript(token for token in turn.tokens if token.choice == choice) for choice in range(turn.job.choices)
    )


def _begins(answer: tuple[str, ...], texts: tuple[str, ...]) -> bool:
    return len(answer) == len(texts) and all(whole.startswith(part) for whole, part in zip(answer, texts, strict=True))
