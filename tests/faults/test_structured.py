"""Answers of a form as clients read them: wherever a reader leaves and comes back, it has each delta once; and the
checks find a delta too many, one too few, and a form that was not asked for."""

import json
from dataclasses import replace
from typing import Any

import pytest

from axon.domain.billing.ledger import Ledger
from axon.domain.billing.usage import Usage
from axon.domain.content.tool_call import CallPiece
from axon.domain.job import Job
from axon.domain.log.chunk import Details, End, Token
from axon.domain.reply import ChatReply, MessagesReply, Reply, ResponseReply
from axon.domain.sampling import Sampling
from axon.domain.turn import Turn, TurnState
from axon.gateway.anthropic.events import Writer as MessagesWriter
from axon.gateway.openai.frames import Writer as ChatWriter
from axon.gateway.responses.events import Writer as ResponsesWriter
from tests.faults.checkers import check_pieces, check_stored, check_told
from tests.faults.doors import Door, door_of
from tests.faults.history import Ask, History, Piece, Told
from tests.faults.structured_asks import make_structured_asks
from tests.faults.transcript import call_head, transcript

SCHEMA = {"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["days"]}
TOOL = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}
ARGUMENTS = '{"days":12}'
TEXT = "".join(call_head(index, "f") + ARGUMENTS for index in range(2))
REPLIES: dict[str, Reply] = {
    "/v1/chat/completions": ChatReply(include_usage=True),
    "/v1/messages": MessagesReply(),
    "/v1/responses": ResponseReply(),
}


def call_tokens() -> list[Token]:
    """Two calls, one character of their arguments a token, with a token before each that has no text."""
    tokens = []
    for index in range(2):
        tokens += [Token(0, 1, ""), Token(0, 1, "", Details(calls=(CallPiece(index, "f"),)))]
        tokens += [Token(0, 1, "", Details(calls=(CallPiece(index, "", character),))) for character in ARGUMENTS]
    return [*tokens, Token(0, 1, "")]


def turn(route: str = "/v1/chat/completions") -> Turn:
    tokens = tuple(call_tokens())
    job = Job(
        id="turn-1",
        tenant="default",
        deployment="tiny",
        version="1",
        lane="lane.tiny.0",
        prompt_ids=(1,),
        sampling=Sampling(max_tokens=99),
        seed=1,
        deadline=9.0,
        created=0.0,
        reply=REPLIES[route],
        call_format="hermes",
    )
    return Turn(
        id="turn-1",
        tenant="default",
        state=TurnState.COMPLETED,
        opened_at=0.0,
        job=job,
        tokens=tokens,
        ends=(End(0, "tool_calls", len(tokens)),),
        usage=Usage(prompt_tokens=1, output_tokens=len(tokens)),
        ledger=Ledger(queued=1, prefilled=1, emitted=len(tokens), attempts=1),
    )


def ask(route: str = "/v1/chat/completions") -> Ask:
    body = {"tools": [TOOL]}
    return Ask(name="calls", body=body, route=route, structured=True, texts=(TEXT,))


def told(**changes: object) -> Told:
    whole = Told(client=0, ask="calls", asked_at=0.0, stream_id="turn-1", ended_at=1.0, num_done=1)
    whole.finishes, whole.ends, whole.usage = ["tool_calls"], {0: "tool_calls"}, [len(call_tokens())]
    whole.pieces = [
        Piece(0.0, seq, 0, text) for seq, token in enumerate(call_tokens(), start=1) if (text := transcript([token]))
    ]
    return replace(whole, **changes)  # type: ignore[arg-type]


def kinds_of(one: Told) -> list[str]:
    history = History(seed=0, asks={"calls": ask()}, turns=[one])
    found = [*check_told(history), *check_stored(history, [turn()], {}), *check_pieces(history, [turn()])]
    return sorted({violation.kind for violation in found})


def read(door: Door, route: str, num_events: int) -> None:
    """A connection of which a reader takes so many events, one token after the other, past where the door stands."""
    path, query = door.resumed()
    after = int(query.get("after", query.get("starting_after", "-1")))
    assert "turn-1" in path
    make: Any = {"/v1/chat/completions": ChatWriter, "/v1/messages": MessagesWriter}.get(route, ResponsesWriter)
    writer, whole = make(turn(route).job, after=after), turn(route).chunk()
    chunks = [replace(whole.until(seq).after(seq - 1), terminal="") for seq in range(1, whole.last + 1)]
    chunks.append(whole.after(whole.last))
    if route == "/v1/chat/completions":
        chunks = [chunk.after(after) for chunk in chunks if chunk.terminal or chunk.last > after]
    for line in (writer.opening() + b"".join(map(writer.frames, chunks))).decode().splitlines():
        assert door.line(line) is None
        num_events -= line.startswith("data: {")
        if not num_events:
            return


@pytest.mark.parametrize("route", REPLIES)
@pytest.mark.parametrize("stride", [3, 4, 7, 1000])
def test_a_reader_that_leaves_at_any_event_has_every_delta_once(route: str, stride: int) -> None:
    one = Told(client=0, ask="calls", asked_at=0.0, stream_id="turn-1")
    door = door_of(ask(route), one, lambda: 0.0)
    for _ in range(200):
        one.finishes.clear()
        one.usage.clear()
        door.connected(anew=False)
        read(door, route, stride)
        if one.num_done:
            break
    assert (one.num_done, one.error, one.text(), one.usage) == (1, "", TEXT, [len(call_tokens())])
    assert check_pieces(History(seed=0, asks={"calls": ask(route)}, turns=[one]), [turn(route)]) == []


def test_a_whole_answer_of_calls_has_nothing_wrong() -> None:
    assert kinds_of(told()) == []


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({"pieces": [*told().pieces[:4], *told().pieces[3:]]}, ["form", "gap", "text"]),
        ({"pieces": [*told().pieces[:4], *told().pieces[5:]]}, ["form", "gap", "text"]),
        ({"pieces": [Piece(0.0, 9, 0, TEXT)]}, ["gap"]),
        ({"usage": [3]}, ["billed"]),
        ({"usage": []}, ["billed"]),
    ],
)
def test_a_delta_too_many_and_one_too_few_are_found(changes: dict[str, object], kinds: list[str]) -> None:
    assert kinds_of(told(**changes)) == kinds


@pytest.mark.parametrize(
    ("text", "end", "is_wrong"),
    [
        (TEXT, "tool_calls", False),
        (TEXT[:-2], "length", False),
        (TEXT[:-2], "tool_calls", True),
        (TEXT.replace("12", '"12"'), "tool_calls", True),
        (TEXT.replace(" f", " g"), "tool_calls", True),
        (f"well, {TEXT}", "tool_calls", True),
        (TEXT[len(TEXT) // 2 :], "tool_calls", True),
        ("", "stop", True),
    ],
)
def test_calls_that_were_not_asked_for_are_found(text: str, end: str, is_wrong: bool) -> None:
    found = kinds_of(told(pieces=[Piece(0.0, len(call_tokens()), 0, text)], ends={0: end}))
    assert ("form" in found) == is_wrong


@pytest.mark.parametrize(
    ("body", "text", "is_wrong"),
    [
        ({"structured_outputs": {"regex": "[ab]+"}}, "abba", False),
        ({"structured_outputs": {"regex": "[ab]+"}}, "abbac", True),
        ({"response_format": {"json_schema": {"schema": SCHEMA}}}, '{"days":1}', False),
        ({"response_format": {"json_schema": {"schema": SCHEMA}}}, '{"days":"1"}', True),
        ({"text": {"format": {"schema": SCHEMA}}}, '{"days":1', True),
    ],
)
def test_a_text_of_another_form_is_found(body: dict[str, Any], text: str, is_wrong: bool) -> None:
    one = told(pieces=[Piece(0.0, 1, 0, text)], ends={0: "stop"})
    asked = replace(ask(), body=body, texts=(text,))
    assert bool(check_told(History(seed=0, asks={"calls": asked}, turns=[one]))) == is_wrong


def test_the_asks_have_every_form_at_every_route() -> None:
    asks = make_structured_asks(7, 10)
    assert {asked.route.rsplit("/", 1)[1] for asked in asks} == {"completions", "messages", "responses"}
    assert {asked.num_choices for asked in asks} == {1, 2}
    assert {"seed" in asked.body for asked in asks} == {True, False}
    assert asks == make_structured_asks(7, 10)
    assert json.dumps([asked.body for asked in asks])
