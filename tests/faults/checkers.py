"""What must hold whatever broke: over what clients were told, what the store holds, and what was left behind."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import psycopg

from axon.domain import wire
from axon.domain.turn import Turn, TurnState
from tests.faults.fleet import Place
from tests.faults.history import History, Told
from tests.journeys.server import Server
from tests.services.process import wait_for

HANGS_S = 15.0
"""A request is answered within it, if only with a 503."""
_SETTLE_S = 90.0
_COUNT = """
[begin
    {ok, {_, Count}, _} = ra:local_query(amqqueue:get_pid(Queue), fun rabbit_fifo:query_messages_%s/1),
    {element(4, amqqueue:get_name(Queue)), Count}
end || Queue <- rabbit_amqqueue:list()].
"""
"""All queues are quorum queues."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The store's rows, all ended."""

    turns: dict[str, Turn]


def check_all(place: Place, history: History, servers: Sequence[Server], *, hangs: bool = False) -> Stored:
    """Everything that a fault may not change."""
    check_told(history, hangs=hangs)
    stored = read_store(place, history)
    check_stored(history, stored)
    check_nothing_left(place, servers)
    return stored


def check_told(history: History, *, hangs: bool = False) -> None:
    """Every accepted turn was told whole, once, in order; whoever was refused was told when to come back."""
    assert history.accepted, "nothing was accepted"
    _none(history, lambda told: told.error, "went wrong")
    _none(history, lambda told: not told.stream_id or told.ended_at is None, "was never answered")
    _none(history, lambda told: told.text != history.asks[told.ask].text, "differs from the undisturbed answer")
    _none(history, _seqs_broken, "has seqs that repeat or skip")
    _none(history, lambda told: told.num_done != 1 or len(told.finishes) != 1, "did not end exactly once")
    _none(history, lambda told: told.usage != [told.seq], "counts other tokens than were told")
    if not hangs:
        _none(history, lambda told: told.slowest_answer_s > HANGS_S, f"hung for more than {HANGS_S:g} s")


def read_store(place: Place, history: History) -> Stored:
    """Waits until the journal has brought every accepted turn, and every turn in the store has ended."""
    accepted = {told.stream_id for told in history.accepted}

    def all_ended() -> bool:
        with psycopg.connect(place.store_admin_url, autocommit=True, connect_timeout=5) as connection:
            ranks: dict[str, int] = dict(connection.execute("SELECT id, rank FROM turns").fetchall())
        return accepted <= ranks.keys() and all(ranks.values())

    wait_for(all_ended, "every accepted turn is in the store and has ended", _SETTLE_S)
    with psycopg.connect(place.store_admin_url, connect_timeout=5) as connection:
        rows = connection.execute("SELECT id, state, output_tokens, body FROM turns").fetchall()
    turns = {}
    for turn_id, state, output_tokens, body in rows:
        turn = wire.decode(Turn, body)
        assert (turn.id, turn.state, turn.usage.output_tokens) == (turn_id, state, output_tokens)
        turns[turn_id] = turn
    assert len(turns) == len(rows)
    return Stored(turns)


def check_stored(history: History, stored: Stored) -> None:
    """Every accepted turn is there once, completed, with the text that its client has and a bill for just that.

    What a client was refused, or never heard of, may be there as well; it has ended too, and said nothing wrong.
    """
    ids = Counter(told.stream_id for told in history.accepted)
    assert ids.most_common(1)[0][1] == 1, f"two asks led to one turn: {ids.most_common(3)}"
    by_id = {told.stream_id: told for told in history.accepted}
    lost = by_id.keys() - stored.turns.keys()
    assert not lost, f"accepted and lost: {sorted(lost)}"
    answers = {ask.text for ask in history.asks.values()}
    for turn in stored.turns.values():
        text = "".join(token.text for token in turn.tokens)
        assert turn.usage.output_tokens == len(turn.tokens), turn.id
        if turn.state is TurnState.COMPLETED:
            assert text in answers, f"{turn.id} says what nobody asked for"
        else:
            assert turn.state is TurnState.CANCELLED, f"{turn.id} is {turn.state} {turn.code}"
            assert any(answer.startswith(text) for answer in answers), turn.id
        if told := by_id.get(turn.id):
            assert turn.state is TurnState.COMPLETED, f"{turn.id} was told whole and is {turn.state}"
            assert text == told.text, turn.id
            assert [turn.usage.output_tokens] == told.usage, turn.id
    _check_keys(history, stored)


def _check_keys(history: History, stored: Stored) -> None:
    """A key leads to one answer, however often it was sent."""
    completed = Counter(
        turn.job.idempotency_key
        for turn in stored.turns.values()
        if turn.job.idempotency_key and turn.state is TurnState.COMPLETED
    )
    assert all(count == 1 for count in completed.values()), f"answered twice under one key: {completed}"


def check_nothing_left(place: Place, servers: Sequence[Server]) -> None:
    """No message waits or is held, no block is used, and everything in the live service goes by itself."""
    wait_for(lambda: not messages(place), "the queues are empty and nothing is held", _SETTLE_S)
    for server in servers:
        wait_for(lambda server=server: server.metric("axon_requests_running") == 0, "the engine is idle")  # type: ignore[misc]
        wait_for(
            lambda server=server: server.metric(r'axon_kv_blocks\{state="used"\}') == 0,  # type: ignore[misc]
            "its blocks are free",
        )
    with place.live() as live:
        lasting = [key for key in live.scan_iter(f"{place.namespace}:*") if live.pttl(key) == -1]
    assert not lasting, f"would stay for ever: {lasting}"


def messages(place: Place, *, which: Literal["total", "checked_out"] = "total") -> dict[str, int]:
    """Messages of this place's queues where there are any; the checked out ones are in somebody's hands.

    Asks the queues themselves: the broker's own lists lag by seconds.
    """
    listed = place.rabbit.ctl("eval", _COUNT % which)
    counts = {name: int(count) for name, count in re.findall(r'"([^"]+)">>,(\d+)', listed)}
    return {
        name.removeprefix(f"{place.namespace}."): count
        for name, count in counts.items()
        if count and name.startswith(f"{place.namespace}.")
    }


def _seqs_broken(told: Told) -> bool:
    """One character is one token, so each piece's seq is the length of the text up to its end."""
    length = 0
    for seq, text in told.pieces:
        length += len(text)
        if seq != length:
            return True
    return False


def _none(history: History, wrong: Callable[[Told], object], what: str) -> None:
    found: Iterable[Told] = [told for told in history.turns if wrong(told)]
    assert not found, f"{what}: {_brief(found)}"


def _brief(turns: Iterable[Told]) -> str:
    return "\n".join(
        f"client {told.client} {told.stream_id or 'refused'} {told.ask} at {told.seq}, done {told.num_done}, "
        f"finish {told.finishes}, usage {told.usage}, waited {told.slowest_answer_s:.1f} s, error {told.error!r}, "
        f"losses {told.losses[-3:]}, refusals {told.refusals[-3:]}"
        for told in list(turns)[:5]
    )
