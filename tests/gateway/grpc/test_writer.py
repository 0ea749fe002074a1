"""What a gRPC client reads is a function of the tokens: however they are cut, and wherever it resumes."""

from collections import defaultdict
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from axon.domain.content.tool_call import CallPiece, call_id
from axon.domain.log.chunk import Chunk, Details, End, Likely, Token
from axon.errors import Cancelled, Draining
from axon.gateway.grpc.writer import Writer
from axon.gateway.offers.wait import State, Wait
from axon.v1 import axon_pb2 as pb
from tests.contracts.builders import make_job
from tests.gateway.openai.test_frames import cut, stream_of

answers = st.lists(st.lists(st.sampled_from(["a", "b ", "", "ü"]), min_size=1, max_size=8), min_size=1, max_size=3)
places = st.lists(st.integers(0, 30), max_size=5)


def said_by(writer: Writer, chunks: list[Chunk]) -> list[pb.GenerateResponse]:
    found = [writer.opening(), *(writer.frames(chunk) for chunk in chunks)]
    return [pb.GenerateResponse.FromString(each) for each in found if each]


def texts_of(messages: list[pb.GenerateResponse]) -> dict[int, str]:
    texts: dict[int, str] = defaultdict(str)
    for message in messages:
        for delta in message.deltas:
            texts[delta.choice] += delta.text
    return {choice: text for choice, text in texts.items() if text}


@given(answers, places)
def test_however_a_stream_is_cut_it_says_the_same(told: list[list[str]], where: list[int]) -> None:
    stream = stream_of(told, ["stop"] * len(told))
    got = said_by(Writer(make_job(choices=len(told))), cut(stream, where))
    whole = {choice: "".join(answer) for choice, answer in enumerate(told) if "".join(answer)}
    assert texts_of(got) == whole
    assert sorted(each.choice for message in got for each in message.finishes) == list(range(len(told)))
    assert got[-1].end.usage.output_tokens == got[-1].seq == len(stream.tokens)
    assert [message.seq for message in got] == sorted(message.seq for message in got)


@given(answers, places, st.data())
def test_whoever_resumes_after_any_message_gets_the_rest(
    told: list[list[str]], where: list[int], data: st.DataObject
) -> None:
    stream = stream_of(told, ["length"] * len(told))
    job = make_job(choices=len(told))
    got = said_by(Writer(job), cut(stream, where))
    read = got[: data.draw(st.integers(1, len(got)))]
    seq = read[-1].seq
    rest = said_by(Writer(job, after=seq), [replace(stream.after(seq), first=seq + 1)])
    whole = {choice: "".join(answer) for choice, answer in enumerate(told) if "".join(answer)}
    before, after = texts_of(read), texts_of(rest)
    assert {each: before.get(each, "") + after.get(each, "") for each in {*before, *after}} == whole
    assert rest[-1].HasField("end")


def test_calls_reasoning_and_log_probabilities_come_with_their_tokens() -> None:
    job = make_job()
    tokens = (
        Token(0, 1, "", Details(reasoning="hm")),
        Token(0, 2, "", Details(calls=(CallPiece(0, "look", '{"a"'),))),
        Token(0, 3, "", Details(calls=(CallPiece(0, "", ": 1}"), CallPiece(1, "go", "{}")))),
        Token(0, 4, "x", Details(data=b"\xc3", logprob=-0.5, top=(Likely(b"y", -1.0),), offset=0)),
    )
    [delta] = said_by(Writer(job), [Chunk(first=1, epoch=1, tokens=tokens)])[1].deltas
    assert (delta.text, delta.reasoning) == ("x", "hm")
    assert [(each.index, each.id, each.name, each.arguments) for each in delta.tool_calls] == [
        (0, call_id(job.id, 0, 0), "look", '{"a": 1}'),
        (1, call_id(job.id, 0, 1), "go", "{}"),
    ]
    [scored] = delta.logprobs
    assert (scored.token, scored.logprob, scored.top[0].token) == (b"\xc3", -0.5, b"y")


def test_tokens_without_text_are_told_by_the_next_message() -> None:
    writer = Writer(make_job())
    assert writer.frames(Chunk(first=1, epoch=1, tokens=(Token(0, 1, ""),))) == b""
    assert pb.GenerateResponse.FromString(writer.silence()).seq == 1
    got = pb.GenerateResponse.FromString(writer.frames(Chunk(first=2, epoch=1, tokens=(Token(0, 2, "ü"),))))
    assert (got.seq, got.deltas[0].text) == (2, "ü")


def test_an_end_that_failed_is_the_calls_status() -> None:
    writer = Writer(make_job())
    last = Chunk(first=1, epoch=1, tokens=(Token(0, 1, "a"),), terminal="cancelled", ends=(End(0, "stop", 1),))
    got = pb.GenerateResponse.FromString(writer.frames(last))
    assert (text := got.deltas[0].text) == "a", text
    assert not got.HasField("end")
    assert not got.finishes
    assert isinstance(writer.problem, Cancelled)
    assert writer.error(Draining()) == b""
    assert isinstance(writer.problem, Draining)


def test_a_turn_that_waits_says_how() -> None:
    wait = Wait(state=State.COLD, position=2, expected_s=4.5)
    writer = Writer(make_job(), wait=wait)
    begun = pb.GenerateResponse.FromString(writer.opening())
    assert (begun.queue.state, begun.queue.position, begun.queue.expected_wait_s) == ("cold", 2, 4.5)
    later = pb.GenerateResponse.FromString(writer.queued(Wait(state=State.LOADING, position=1)))
    assert (later.queue.state, later.queue.HasField("expected_wait_s")) == ("loading", False)
