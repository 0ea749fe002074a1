"""A message's events: in Anthropic's order, the same however the stream was cut, resumed or kept."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axon.domain import wire
from axon.domain.content.tool_call import CallPiece
from axon.domain.job import Job
from axon.domain.log.chunk import Chunk, Details, End, Token
from axon.domain.reply import MessagesReply
from axon.domain.turn import TurnState, ended, opened
from axon.errors import Draining, Overloaded
from axon.gateway.anthropic.blocks import INVALID_JSON
from axon.gateway.anthropic.events import Writer
from axon.gateway.anthropic.message import message_body
from axon.gateway.offers.wait import State, Wait
from tests.contracts.builders import make_job
from tests.domain.strategies import cut_chunk, cuts

JOB = make_job("msg_1", reply=MessagesReply(model="small"))
HIDING = make_job("msg_1", reply=MessagesReply(model="small", hides_thinking=True))
FAILED = [str(state) for state in TurnState if state.terminal and state is not TurnState.COMPLETED]

thoughts = st.sampled_from(["hmm", " so", "\n"]).map(lambda text: ("", Details(reasoning=text)))
said = st.sampled_from(["", "a", "é", " of", "\n\n", "data: x", "🦀"]).map(lambda text: (text, None))
pieces = st.sampled_from(['{"ci', 'ty":', ' "Bonn"}', ""])
calls = st.builds(
    lambda index, name, text: ("", Details(calls=(CallPiece(index, name, text),))),
    st.integers(0, 2),
    st.just("f"),
    pieces,
)


def _number_of(part: tuple[str, Details | None]) -> int:
    """The number of the call that a part belongs to."""
    return part[1].calls[0].index if part[1] is not None else 0


@st.composite
def streams(draw: st.DrawFn) -> Chunk:
    """A stream of thinking, text and calls in this order, as models write them, with any end."""
    parts = draw(st.lists(thoughts, max_size=4)) + draw(st.lists(said, max_size=10))
    parts += sorted(draw(st.lists(calls, max_size=4)), key=_number_of)
    tokens = tuple(Token(0, number, text, details) for number, (text, details) in enumerate(parts, start=1))
    terminal = draw(st.sampled_from(["completed", "completed", *FAILED]))
    ends = (End(0, draw(st.sampled_from(["stop", "length", "tool_calls"]))),) if terminal == "completed" else ()
    return Chunk(first=1, epoch=1, tokens=tokens, ends=ends, terminal=terminal, code="worker_crash", message="oh")


jobs = st.sampled_from([JOB, HIDING])


def frames(job: Job, chunks: tuple[Chunk, ...], after: int = 0) -> list[bytes]:
    writer = Writer(job, after=after)
    out = writer.opening() + b"".join(writer.frames(chunk) for chunk in chunks)
    return [frame + b"\n\n" for frame in out.split(b"\n\n")[:-1]]


def event(frame: bytes) -> dict[str, Any]:
    name, data = frame.decode().removesuffix("\n\n").split("\n", 1)
    body: dict[str, Any] = json.loads(data.removeprefix("data: "))
    assert name == f"event: {body['type']}"
    return body


def events(job: Job, *chunks: Chunk, after: int = 0) -> list[dict[str, Any]]:
    return [event(frame) for frame in frames(job, chunks, after)]


@settings(deadline=None)
@given(jobs, streams(), cuts(), cuts())
def test_events_are_the_same_however_the_stream_was_cut(
    job: Job, stream: Chunk, here: list[int], there: list[int]
) -> None:
    assert frames(job, cut_chunk(stream, here)) == frames(job, cut_chunk(stream, there)) == frames(job, (stream,))


@settings(deadline=None)
@given(jobs, streams(), cuts(), st.data())
def test_a_reader_that_comes_back_with_any_seq_it_saw_gets_exactly_the_rest(
    job: Job, stream: Chunk, places: list[int], data: st.DataObject
) -> None:
    whole = frames(job, (stream,))
    seqs = {0: 0}
    for number, body in enumerate(map(event, whole), start=1):
        if "seq" in body.get("axon", {}):
            assert body["axon"]["seq"] not in seqs, "no two events have one number"
            seqs[body["axon"]["seq"]] = number
    seen = data.draw(st.sampled_from(sorted(seqs)))
    assert frames(job, cut_chunk(stream, places), after=seen) == whole[seqs[seen] :]


@settings(deadline=None)
@given(jobs, streams())
def test_what_the_store_kept_tells_the_same_events_as_the_log(job: Job, stream: Chunk) -> None:
    turn = wire.decode(type(opened(job)), wire.encode(ended(opened(job), (stream,), at=5.0)))
    assert frames(turn.job, (turn.chunk(),)) == frames(job, (stream,))


@settings(deadline=None)
@given(jobs, streams())
def test_blocks_come_one_after_the_other_between_start_and_end(job: Job, stream: Chunk) -> None:
    names = [(each["type"], each.get("index")) for each in events(job, stream)]
    assert names[0][0] == "message_start"
    if stream.terminal != "completed":
        assert names[-1][0] == "error"
        return
    assert [name for name, _ in names[-2:]] == ["message_delta", "message_stop"]
    index, is_open = -1, False
    for name, number in names[1:-2]:
        if name == "content_block_start":
            assert (number, is_open) == (index + 1, False)
            index, is_open = index + 1, True
        else:
            assert (number, is_open) == (index, True)
            is_open = name != "content_block_stop"
    assert not is_open


@settings(deadline=None)
@given(jobs, streams().filter(lambda stream: stream.terminal == "completed"), cuts())
def test_deltas_add_up_to_the_whole_message(job: Job, stream: Chunk, places: list[int]) -> None:
    whole = message_body(job, [stream])
    found: list[dict[str, Any]] = []
    for each in events(job, *cut_chunk(stream, places)):
        if each["type"] == "content_block_start":
            found.append({**each["content_block"], "json": ""})
        elif each["type"] == "content_block_delta":
            match each["delta"]:
                case {"type": "text_delta", "text": text}:
                    found[-1]["text"] += text
                case {"type": "thinking_delta", "thinking": text}:
                    found[-1]["thinking"] += text
                case {"type": "signature_delta", "signature": text}:
                    found[-1]["signature"] = text
                case {"type": "input_json_delta", "partial_json": text}:
                    found[-1]["json"] += text
        elif each["type"] == "message_delta":
            assert each["delta"] == {name: whole[name] for name in ("stop_reason", "stop_sequence")}
            assert each["usage"] == whole["usage"]
    for block, body in zip(found, whole["content"], strict=True):
        written = block.pop("json")
        if body["type"] == "tool_use" and body["input"]:
            invalid = body["input"].get(INVALID_JSON)
            assert invalid in (None, written)
            block["input"] = json.loads(written) if invalid is None and written.endswith("}") else body["input"]
        assert block == body


def test_the_events_of_a_message_of_each_kind_of_block() -> None:
    tokens = (
        Token(0, 1, "", Details(reasoning="hm")),
        Token(0, 2, "Hi"),
        Token(0, 3, "\n"),
        Token(0, 4, "", Details(calls=(CallPiece(0, "get", '{"a"'),))),
        Token(0, 5, "", Details(calls=(CallPiece(0, "", ":1}"),))),
        Token(0, 6, "\n", Details(calls=(CallPiece(1, "put", "{}"),))),
    )
    stream = Chunk(first=1, epoch=1, tokens=tokens, ends=(End(0, "tool_calls"),), terminal="completed", cached=2)
    got = events(JOB, stream)
    assert [(each["type"], each.get("index")) for each in got] == [
        ("message_start", None),
        *[
            ("content_block_start", 0),
            ("content_block_delta", 0),
            ("content_block_delta", 0),
            ("content_block_stop", 0),
        ],
        *[
            ("content_block_start", 1),
            ("content_block_delta", 1),
            ("content_block_delta", 1),
            ("content_block_stop", 1),
        ],
        *[
            ("content_block_start", 2),
            ("content_block_delta", 2),
            ("content_block_delta", 2),
            ("content_block_stop", 2),
        ],
        *[("content_block_start", 3), ("content_block_delta", 3), ("content_block_stop", 3)],
        ("message_delta", None),
        ("message_stop", None),
    ]
    message = got[0]["message"]
    assert (message["id"], message["role"], message["content"], message["stop_reason"]) == (
        "msg_1",
        "assistant",
        [],
        None,
    )
    assert message["usage"]["input_tokens"] == JOB.num_prompt_tokens > 0
    assert got[-2]["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    assert got[-2]["usage"]["input_tokens"] == JOB.num_prompt_tokens - 2
    assert got[-2]["usage"]["cache_read_input_tokens"] == 2
    assert got[-2]["usage"]["output_tokens"] == 6


def test_a_stop_sequence_is_told_by_its_text() -> None:
    tokens = (Token(0, 1, "Hi"), Token(0, 2, "", Details(stop="END")))
    stream = Chunk(first=1, epoch=1, tokens=tokens, ends=(End(0, "stop"),), terminal="completed")
    assert events(JOB, stream)[-2]["delta"] == {"stop_reason": "stop_sequence", "stop_sequence": "END"}
    assert events(JOB, stream, after=2)[-2]["delta"] == {"stop_reason": "stop_sequence", "stop_sequence": "END"}


@pytest.mark.parametrize(
    ("terminal", "kind"),
    [("failed", "api_error"), ("expired", "timeout_error"), ("cancelled", "invalid_request_error")],
)
def test_a_turn_that_fails_ends_with_an_error_event(terminal: str, kind: str) -> None:
    last = events(JOB, Chunk(first=1, epoch=1, terminal=terminal, code="worker_crash", message="oh"))[-1]
    assert (last["type"], last["error"]) == ("error", {"type": kind, "message": "oh"})


def test_a_reader_with_more_tokens_than_there_are_is_told_that_the_stream_diverged() -> None:
    stream = Chunk(first=1, epoch=1, tokens=(Token(0, 1, "a"),), ends=(End(0, "stop"),), terminal="completed")
    [last] = events(JOB, stream, after=5)
    assert last["type"] == "error"


def test_a_break_is_told_with_the_requests_id() -> None:
    writer = Writer(JOB, request_id="req_7")
    assert event(writer.error(Overloaded())) == {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "The server is at its capacity; try again soon."},
        "request_id": "req_7",
    }
    assert event(writer.error(Draining()))["error"]["type"] == "api_error"


def test_a_ping_says_how_a_turn_waits_until_it_runs() -> None:
    writer = Writer(JOB)
    assert event(writer.silence()) == {"type": "ping"}
    waiting = event(writer.queued(Wait(state=State.COLD, position=2, expected_s=3.0)))
    assert waiting["axon"]["queue"]["position"] == 2
    assert event(writer.silence()) == waiting
    writer.frames(Chunk(first=1, epoch=1, tokens=(Token(0, 1, "a"),)))
    assert event(writer.silence()) == {"type": "ping"}


def test_ids_are_written_for_a_client_that_asks_for_them() -> None:
    writer = Writer(JOB, with_ids=True)
    written = writer.opening() + writer.frames(Chunk(first=1, epoch=1, tokens=(Token(0, 1, "a"), Token(0, 2, "b"))))
    assert [line for line in written.decode().splitlines() if line.startswith("id: ")] == ["id: 1", "id: 2"]
