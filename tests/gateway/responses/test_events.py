"""A response's events: numbered without gaps, the same however the stream was cut, resumed or kept."""

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai._models import construct_type
from openai.types.responses import ResponseStreamEvent

from axon.domain import wire
from axon.domain.content.item import Item
from axon.domain.content.tool_call import CallPiece, call_id
from axon.domain.job import Job
from axon.domain.log.chunk import Chunk, Details, End, Likely, Token
from axon.domain.reply import ResponseReply
from axon.domain.turn import TurnState, ended, opened
from axon.errors import StreamDiverged
from axon.gateway.offers.wait import State, Wait
from axon.gateway.responses.events import Writer, last_number
from tests.contracts.builders import make_job
from tests.domain.strategies import cut_chunk, cuts

TERMINAL = [str(state) for state in TurnState if state.terminal]
JOB = make_job(
    "resp_1",
    session="conv_1",
    items=(Item(id="msg_1", role="user", texts=("hi",)),),
    reply=ResponseReply(model="small", instructions="Be brief."),
)


LIKELY = Details(data=b"a", logprob=-0.5, top=(Likely(b"b", -1.0),), offset=0)


def whole_stream(
    texts: list[str], terminal: str, reason: str, thoughts: list[str] | None = None, likely: bool = False
) -> Chunk:
    """A stream that may begin with thinking; the last thought and the first text may come in one token."""
    known = LIKELY if likely else Details()
    thinking = [(text, "") for text in thoughts or []]
    if thinking and texts and len(texts) % 2:
        thinking[-1], texts = (thinking[-1][0], texts[0]), texts[1:]
    parts = [*thinking, *(("", text) for text in texts)]
    tokens = tuple(
        Token(0, number, text, msgspec.structs.replace(known, reasoning=thought))
        for number, (thought, text) in enumerate(parts, start=1)
    )
    ends = (End(0, reason),) if terminal == "completed" else ()
    return Chunk(first=1, epoch=1, tokens=tokens, ends=ends, terminal=terminal, code="worker_crash", message="oh")


streams = st.builds(
    whole_stream,
    st.lists(st.sampled_from(["", "a", "é", " of", "\n\n", "data: x", "🦀"]), max_size=12),
    st.sampled_from(TERMINAL),
    st.sampled_from(["stop", "length"]),
    st.lists(st.sampled_from(["", "hmm", " so", "\n"]), max_size=4),
    st.booleans(),
)
jobs = st.builds(lambda background: make_job("resp_1", background=background, reply=JOB.reply), st.booleans())


def frames(job: Job, chunks: tuple[Chunk, ...], after: int = -1) -> list[bytes]:
    writer = Writer(job, after=after)
    out = writer.opening() + b"".join(writer.frames(chunk) for chunk in chunks)
    return [frame + b"\n\n" for frame in out.split(b"\n\n")[:-1]]


def event(frame: bytes) -> dict[str, Any]:
    name, data = frame.decode().removesuffix("\n\n").split("\n", 1)
    body: dict[str, Any] = json.loads(data.removeprefix("data: "))
    assert name == f"event: {body['type']}"
    return body


@settings(deadline=None)
@given(jobs, streams, cuts(), cuts())
def test_events_are_the_same_however_the_stream_was_cut(
    job: Job, stream: Chunk, here: list[int], there: list[int]
) -> None:
    assert frames(job, cut_chunk(stream, here)) == frames(job, cut_chunk(stream, there)) == frames(job, (stream,))


@settings(deadline=None)
@given(jobs, streams, cuts(), st.lists(st.integers(-1, 30), max_size=5))
def test_any_way_of_resuming_gives_the_same_events(
    job: Job, stream: Chunk, places: list[int], stops: list[int]
) -> None:
    whole = frames(job, (stream,))
    got: list[bytes] = []
    for stop in sorted(min(stop, len(whole) - 1) for stop in stops):
        got += frames(job, cut_chunk(stream, places), after=len(got) - 1)[: max(0, stop + 1 - len(got))]
    got += frames(job, cut_chunk(stream, places[::-1]), after=len(got) - 1)
    assert got == whole


@settings(deadline=None)
@given(jobs, streams)
def test_numbers_have_no_gap_and_the_stream_has_one_end(job: Job, stream: Chunk) -> None:
    events = [event(frame) for frame in frames(job, (stream,))]
    assert [each["sequence_number"] for each in events] == list(range(len(events)))
    assert events[0]["type"] == "response.created"
    ends = [each["type"] for each in events if each["type"].split(".")[-1] in ("completed", "failed", "incomplete")]
    assert ends == [events[-1]["type"]]


@settings(deadline=None)
@given(jobs, streams, cuts())
def test_deltas_add_up_to_the_text_that_every_later_event_tells(job: Job, stream: Chunk, places: list[int]) -> None:
    events = [event(frame) for frame in frames(job, cut_chunk(stream, places))]
    said = [each["delta"] for each in events if each["type"] == "response.output_text.delta"]
    thought = [each["delta"] for each in events if each["type"] == "response.reasoning_text.delta"]
    output = {item["type"]: item["content"][0]["text"] for item in events[-1]["response"]["output"]}
    done = {each["type"]: each["text"] for each in events if each["type"].endswith("_text.done")}
    assert output.get("message", "") == done.get("response.output_text.done", "") == "".join(said)
    assert output.get("reasoning", "") == done.get("response.reasoning_text.done", "") == "".join(thought)
    assert [event["item"] for event in events if event["type"] == "response.output_item.done"] == events[-1][
        "response"
    ]["output"]


@settings(deadline=None)
@given(jobs, streams)
def test_what_the_store_kept_tells_the_same_events_as_the_log(job: Job, stream: Chunk) -> None:
    turn = wire.decode(type(opened(job)), wire.encode(ended(opened(job), (stream,), at=5.0)))
    assert frames(turn.job, (turn.chunk(),)) == frames(job, (stream,))


@settings(deadline=None)
@given(jobs, streams)
def test_the_official_client_knows_every_event(job: Job, stream: Chunk) -> None:
    for each in map(event, frames(job, (stream,))):
        known: Any = construct_type(type_=ResponseStreamEvent, value=each)
        assert known.type == each["type"]
        type(known).model_validate(each)


@pytest.mark.parametrize(
    ("terminal", "reason", "name", "status"),
    [
        ("completed", "stop", "response.completed", "completed"),
        ("completed", "length", "response.incomplete", "incomplete"),
        ("cancelled", "", "response.incomplete", "cancelled"),
        ("failed", "", "response.failed", "failed"),
        ("expired", "", "response.failed", "failed"),
    ],
)
def test_an_end_has_its_event_and_its_status(terminal: str, reason: str, name: str, status: str) -> None:
    last = event(frames(JOB, (whole_stream(["a"], terminal, reason),))[-1])
    assert (last["type"], last["response"]["status"]) == (name, status)


def test_log_probabilities_come_with_the_text_they_belong_to() -> None:
    events = [event(frame) for frame in frames(JOB, (whole_stream(["", "a", "b"], "completed", "stop", likely=True),))]
    deltas = [len(each["logprobs"]) for each in events if each["type"] == "response.output_text.delta"]
    assert deltas == [2, 1]
    [message] = events[-1]["response"]["output"]
    assert len(message["content"][0]["logprobs"]) == 3
    assert message["content"][0]["logprobs"][0]["top_logprobs"] == [{"token": "b", "logprob": -1.0, "bytes": [98]}]


def test_thinking_is_an_item_before_the_answer() -> None:
    stream = whole_stream(["a", "b"], "completed", "stop", ["hmm", " so"])
    events = [event(frame) for frame in frames(JOB, (stream,))]
    names = [each["type"].removeprefix("response.") for each in events]
    assert names == [
        *("created", "in_progress", "output_item.added", "content_part.added"),
        *("reasoning_text.delta", "reasoning_text.delta"),
        *("reasoning_text.done", "content_part.done", "output_item.done", "output_item.added", "content_part.added"),
        *("output_text.delta", "output_text.delta", "output_text.done", "content_part.done", "output_item.done"),
        "completed",
    ]
    assert [item["type"] for item in events[-1]["response"]["output"]] == ["reasoning", "message"]
    assert {each["output_index"] for each in events if each["type"] == "response.output_text.delta"} == {1}


def test_an_error_that_breaks_the_stream_off_takes_no_number() -> None:
    writer = Writer(JOB)
    writer.opening()
    broken = event(writer.error(StreamDiverged()))
    assert (broken["type"], broken["code"], broken["sequence_number"]) == ("error", "stream_diverged", 1)


@settings(deadline=None)
@given(jobs, streams)
def test_the_last_number_is_that_of_the_last_event(job: Job, stream: Chunk) -> None:
    turn = ended(opened(job), (stream,), at=1.0)
    assert last_number(turn) == event(frames(job, (stream,))[-1])["sequence_number"]


@settings(deadline=None)
@given(jobs, streams, st.integers(1, 100))
def test_a_reader_beyond_the_last_event_learns_the_end(job: Job, stream: Chunk, beyond: int) -> None:
    whole = frames(job, (stream,))
    got = frames(job, (stream,), after=len(whole) - 1 + beyond)
    if stream.terminal == "completed":
        assert [event(each)["code"] for each in got] == ["stream_diverged"]
    else:
        assert got == whole[-1:]


def events_of(frames: bytes) -> list[dict[str, Any]]:
    return [json.loads(frame.partition(b"\ndata: ")[2]) for frame in frames.split(b"\n\n") if frame]


def test_a_turn_that_waits_for_a_first_worker_is_queued_until_its_first_token() -> None:
    waits = [Wait(state=State.COLD, position=2, expected_s=9.0), Wait(state=State.LOADING, position=1)]
    writer = Writer(replace(JOB, queued=2), wait=waits[0])
    created, first = events_of(writer.opening())
    assert (created["type"], created["response"]["status"]) == ("response.created", "queued")
    assert (first["type"], first["sequence_number"], first["response"]["status"]) == ("response.queued", 1, "queued")
    assert first["axon"]["queue"] == {"state": "cold", "position": 2, "expected_wait_s": 9.0}
    [again] = events_of(writer.queued(waits[1]))
    assert (again["type"], again["sequence_number"]) == ("response.queued", 1)
    assert again["axon"]["queue"] == {"state": "loading", "position": 1, "expected_wait_s": None}
    rest = events_of(writer.frames(whole_stream(["a"], "completed", "stop")))
    assert [each["type"] for each in rest][:2] == ["response.in_progress", "response.output_item.added"]
    assert [each["sequence_number"] for each in rest] == list(range(2, 2 + len(rest)))
    assert writer.queued(waits[1]) == b"", "it runs"


def test_events_of_a_turn_that_waited_have_the_same_numbers_when_they_are_read_again() -> None:
    job, chunk = replace(JOB, queued=1), whole_stream(["a", "b"], "completed", "stop")
    first = Writer(job, wait=Wait(state=State.COLD, position=1))
    whole = events_of(first.opening() + first.frames(chunk))
    del whole[1]["axon"]  # how it waits is told to those who wait
    for after in range(len(whole)):
        later = Writer(job, after=after)
        assert events_of(later.opening() + later.frames(chunk)) == whole[after + 1 :]


PIECES = [
    ("I look.", ()),
    ("", (CallPiece(0, "f"),)),
    ("", (CallPiece(0, "", '{"a"'),)),
    ("", (CallPiece(0, "", ": 1}"), CallPiece(1, "g"))),
    ("", (CallPiece(1, "", "{}"),)),
    ("More.", ()),
]
CALLER = make_job("resp_1", reply=ResponseReply(model="small"), call_format="hermes")


def calling(pieces: list[tuple[str, tuple[CallPiece, ...]]], reason: str = "tool_calls") -> Chunk:
    tokens = tuple(Token(0, number, text, Details(calls=calls)) for number, (text, calls) in enumerate(pieces))
    return Chunk(first=1, epoch=1, tokens=tokens, ends=(End(0, reason),), terminal="completed")


def test_calls_are_items_with_deltas_of_their_arguments() -> None:
    writer = Writer(CALLER)
    found = events_of(writer.opening() + writer.frames(calling(PIECES)))
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    for event in found:
        construct_type(type_=ResponseStreamEvent, value=event)
    assert [event["type"].removeprefix("response.") for event in found[2:]] == [
        *("output_item.added", "content_part.added", "output_text.delta"),
        *("output_text.done", "content_part.done", "output_item.done"),
        *("output_item.added", "function_call_arguments.delta", "function_call_arguments.delta"),
        *("function_call_arguments.done", "output_item.done"),
        *("output_item.added", "function_call_arguments.delta"),
        *("function_call_arguments.done", "output_item.done"),
        *("output_item.added", "content_part.added", "output_text.delta"),
        *("output_text.done", "content_part.done", "output_item.done"),
        "completed",
    ]
    done = [event["item"] for event in found if event["type"] == "response.output_item.done"]
    assert found[-1]["response"]["output"] == done
    assert [item["type"] for item in done] == ["message", "function_call", "function_call", "message"]
    assert [event["output_index"] for event in found if event["type"] == "response.output_item.added"] == [0, 1, 2, 3]
    assert len({item["id"] for item in done}) == 4
    assert done[1] == {
        "id": "fc_1_0",
        "type": "function_call",
        "status": "completed",
        "call_id": call_id("resp_1", 0, 0),
        "name": "f",
        "arguments": '{"a": 1}',
    }


@pytest.mark.parametrize("after", range(-1, 23))
def test_a_stream_of_calls_is_resumed_at_any_event(after: int) -> None:
    whole, rest = Writer(CALLER), Writer(CALLER, after=after)
    frames = [writer.opening() + writer.frames(calling(PIECES)) for writer in (whole, rest)]
    assert frames[0].endswith(frames[1])
    assert len(events_of(frames[1])) == len(events_of(frames[0])) - after - 1


def test_half_a_call_is_incomplete() -> None:
    chunk = calling(PIECES[:3], reason="length")
    writer = Writer(CALLER)
    writer.opening()
    found = events_of(writer.frames(chunk))
    assert found[-1]["type"] == "response.incomplete"
    assert [(item["type"], item["status"]) for item in found[-1]["response"]["output"]] == [
        ("message", "completed"),
        ("function_call", "incomplete"),
    ]
    assert found[-1]["response"]["output"][1]["arguments"] == '{"a"'
    assert found[-2]["item"] == found[-1]["response"]["output"][1]
