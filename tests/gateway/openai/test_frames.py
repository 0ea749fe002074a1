"""What a client reads is a function of the tokens: however they are cut, resumed or told again."""

import json
from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.billing.cost import Rates
from axon.domain.billing.ledger import Ledger
from axon.domain.job import Job
from axon.domain.log.chunk import Chunk, Details, End, Likely, Token
from axon.domain.moved import Moved
from axon.domain.reply import ChatReply, CompletionReply
from axon.gateway.offers.wait import State, Wait
from axon.gateway.openai.frames import DONE, Writer, whole
from tests.contracts.builders import make_job

REASONS = ["stop", "length"]


@dataclass
class Read:
    """A client's memory of a stream."""

    texts: dict[int, str] = field(default_factory=lambda: defaultdict(str))
    finishes: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    roles: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    seq: int = 0
    usage: Any = None
    done: bool = False

    def feed(self, frame: bytes, *, chat: bool) -> None:
        if frame == DONE.strip():
            self.done = True
            return
        event = json.loads(frame.removeprefix(b"data: "))
        self.seq = event["axon"]["seq"]
        self.usage = event.get("usage") or self.usage
        for choice in event["choices"]:
            delta = choice["delta"] if chat else {"content": choice["text"]}
            self.texts[choice["index"]] += delta.get("content") or ""
            self.roles[choice["index"]] += "role" in delta
            if choice["finish_reason"] and choice["finish_reason"] not in self.finishes[choice["index"]]:
                self.finishes[choice["index"]].append(choice["finish_reason"])


def frames_of(data: bytes) -> list[bytes]:
    return [frame for frame in data.split(b"\n\n") if frame]


def stream_of(answers: list[list[str]], reasons: list[str]) -> Chunk:
    """The whole stream of these choices, each a list of tokens' texts, in the order of position and choice."""
    tokens: list[Token] = []
    ends: list[End] = []
    for position in range(max(map(len, answers))):
        for choice, answer in enumerate(answers):
            if position < len(answer):
                tokens.append(Token(choice, 100 + position, answer[position]))
                if position == len(answer) - 1:
                    ends.append(End(choice, reasons[choice], len(tokens)))
    return Chunk(first=1, epoch=1, tokens=tuple(tokens), ends=tuple(ends), terminal="completed", cached=2)


def cut(stream: Chunk, places: list[int]) -> list[Chunk]:
    edges = [0, *sorted({min(place, len(stream.tokens) - 1) for place in places} - {0}), len(stream.tokens)]
    return [
        replace(
            stream,
            first=start + 1,
            tokens=stream.tokens[start:end],
            ends=tuple(each for each in stream.ends if end == edges[-1] or start < (each.at or 0) <= end),
            terminal=stream.terminal if end == edges[-1] else "",
        )
        for start, end in pairwise(edges)
    ]


def job_of(num_choices: int, route: str, **reply: Any) -> Job:
    kind = ChatReply if route == "chat" else CompletionReply
    return make_job(choices=num_choices, reply=kind(model="m", **reply))


answers = st.lists(st.lists(st.text("ab", max_size=2), min_size=1, max_size=8), min_size=1, max_size=3)


def connect(job: Job, chunks: list[Chunk], read: Read, max_frames: int) -> None:
    """Reads on from where the client stands, over a connection that breaks after so many frames."""
    after, writer = read.seq, Writer(job, after=read.seq)
    unread = [chunk.after(after) for chunk in chunks if chunk.last > after or chunk.terminal]
    frames = [frame for chunk in unread for frame in frames_of(writer.frames(chunk))]
    for frame in frames[:max_frames]:
        read.feed(frame, chat=isinstance(job.reply, ChatReply))


@given(answers, st.data(), st.sampled_from(["chat", "completion"]))
def test_any_cuts_and_any_resumes_give_every_choice_its_text_and_its_end(
    texts: list[list[str]], data: st.DataObject, route: str
) -> None:
    reasons = [data.draw(st.sampled_from(REASONS)) for _ in texts]
    stream = stream_of(texts, reasons)
    chunks = cut(stream, data.draw(st.lists(st.integers(0, 24), max_size=6), label="cuts"))
    job = job_of(len(texts), route, include_usage=True)
    read = Read()
    for max_frames in [*data.draw(st.lists(st.integers(0, 9), max_size=6), label="frames before each break"), 1000]:
        if not read.done:
            connect(job, chunks, read, max_frames)
    assert read.done
    assert {**dict.fromkeys(range(len(texts)), ""), **read.texts} == dict(enumerate(map("".join, texts)))
    assert dict(read.finishes) == {index: [reason] for index, reason in enumerate(reasons)}
    assert read.usage["completion_tokens"] == len(stream.tokens)
    assert read.usage["prompt_tokens_details"]["cached_tokens"] == 2


@given(answers, st.lists(st.integers(0, 24), max_size=6))
def test_a_whole_connection_opens_and_ends_every_choice_once(texts: list[list[str]], places: list[int]) -> None:
    stream = stream_of(texts, ["stop"] * len(texts))
    writer = Writer(job_of(len(texts), "chat"))
    frames = frames_of(b"".join(writer.frames(chunk) for chunk in cut(stream, places)))
    events = [json.loads(frame.removeprefix(b"data: ")) for frame in frames[:-1]]
    assert frames[-1] == DONE.strip()
    for index in range(len(texts)):
        own = [event["choices"][0] for event in events if event["choices"][0]["index"] == index]
        assert [choice["delta"].get("role") for choice in own] == ["assistant", *[None] * (len(own) - 1)]
        assert [choice["finish_reason"] for choice in own] == [*[None] * (len(own) - 1), "stop"]


@given(answers, st.lists(st.integers(0, 24), max_size=6))
def test_the_whole_answer_says_what_the_stream_says(texts: list[list[str]], places: list[int]) -> None:
    stream = stream_of(texts, ["length"] * len(texts))
    body = whole(job_of(len(texts), "completion"), cut(stream, places))
    assert [choice["text"] for choice in body["choices"]] == list(map("".join, texts))
    assert [choice["finish_reason"] for choice in body["choices"]] == ["length"] * len(texts)
    assert body["usage"]["completion_tokens"] == len(stream.tokens)


def test_every_answer_begins_with_its_own_prompt_where_that_is_echoed() -> None:
    job = replace(job_of(4, "completion", echo=["one ", "two "]), more_prompts=((2,),))
    stream = stream_of([["a", "b"], ["c"], ["d"], ["e"]], ["stop"] * 4)
    texts = ["one ab", "one c", "two d", "two e"]
    assert [choice["text"] for choice in whole(job, [stream])["choices"]] == texts
    read = Read()
    connect(job, [stream], read, 1)
    connect(job, [stream], read, 1000)
    assert list(read.texts.values()) == texts


def test_of_more_answers_than_are_returned_the_likeliest_per_token_are_the_best_first() -> None:
    scores = [[-1.0, -3.0], [-1.5], [-9.0], [-0.5, -0.5, -0.5], [-4.0], [float("-inf")]]
    tokens = [
        Token(choice, 1, str(choice), Details(logprob=score, data=b"x"))
        for choice, own in enumerate(scores)
        for score in own
    ]
    ends = tuple(End(choice, "length" if choice % 2 else "stop", len(tokens)) for choice in range(6))
    stream = Chunk(first=1, epoch=1, tokens=tuple(tokens), ends=ends, terminal="completed")
    job = replace(job_of(6, "completion", best=2, hides_logprobs=True, echo=("p", "q")), more_prompts=((1, 2),))
    body = whole(job, [stream])
    found = [(choice["index"], choice["text"], choice["finish_reason"]) for choice in body["choices"]]
    assert found == [(0, "p1", "length"), (1, "p00", "stop"), (2, "q333", "length"), (3, "q4", "stop")]
    assert [choice["logprobs"] for choice in body["choices"]] == [None] * 4
    assert body["usage"]["completion_tokens"] == len(tokens)


def test_an_end_that_an_earlier_release_wrote_follows_its_chunks_last_token() -> None:
    chunk = Chunk(first=1, epoch=1, tokens=(Token(0, 1, "a"),), ends=(End(0, "stop"),), terminal="completed")
    frames = frames_of(Writer(job_of(1, "chat")).frames(chunk))
    assert [json.loads(frame[6:])["choices"][0]["finish_reason"] for frame in frames[:-1]] == [None, "stop"]


def test_usage_is_null_until_the_end_or_counts_along() -> None:
    chunks = cut(stream_of([["a", "b", "c"]], ["stop"]), [1, 2])
    for continuous, expected in [(False, [None, None, None, None, 3]), (True, [1, 2, 3, 3, 3])]:
        job = job_of(1, "chat", include_usage=True, continuous_usage=continuous)
        writer = Writer(job)
        frames = [frame for chunk in chunks for frame in frames_of(writer.frames(chunk))][:-1]
        usages = [json.loads(frame[6:])["usage"] for frame in frames]
        assert [usage and usage["completion_tokens"] for usage in usages] == expected


def test_an_echoed_prompt_opens_every_choice_and_moves_the_offsets() -> None:
    details = Details(data=b"x", logprob=float("-inf"), top=(Likely(b"\xc3", -0.5),), offset=4)
    stream = Chunk(
        first=1,
        epoch=1,
        tokens=(Token(0, 1, "x", details), Token(1, 2, "y", details)),
        ends=(End(0, "stop", 1), End(1, "stop", 2)),
        terminal="completed",
    )
    job = job_of(2, "completion", echo=("Say ",))
    body = whole(job, [stream])
    assert [choice["text"] for choice in body["choices"]] == ["Say x", "Say y"]
    assert body["choices"][0]["logprobs"] == {
        "tokens": ["x"],
        "token_logprobs": [-9999.0],
        "top_logprobs": [{"\N{REPLACEMENT CHARACTER}": -0.5}],
        "text_offset": [8],
    }
    read = Read()
    connect(job, [stream], read, 1000)
    assert dict(read.texts) == {0: "Say x", 1: "Say y"}


def test_log_probabilities_of_a_chat_name_bytes_and_stand_with_tokens_that_have_no_text_yet() -> None:
    half = Details(data=b"\xc3", logprob=-0.5, top=(Likely(b"\xc3", -0.5), Likely(b"a", -1.0)))
    rest = Details(data=b"\xa9", logprob=-0.25)
    stream = Chunk(first=1, epoch=1, tokens=(Token(0, 1, "", half), Token(0, 2, "é", rest)))
    [frame] = frames_of(Writer(job_of(1, "chat")).frames(stream))
    content = json.loads(frame[6:])["choices"][0]["logprobs"]["content"]
    assert [(each["bytes"], each["logprob"]) for each in content] == [([0xC3], -0.5), ([0xA9], -0.25)]
    assert [each["token"] for each in content[0]["top_logprobs"]] == ["\N{REPLACEMENT CHARACTER}", "a"]
    [early] = frames_of(
        Writer(job_of(1, "chat"), after=3).frames(Chunk(first=4, epoch=1, tokens=(Token(0, 1, "", half),)))
    )
    assert json.loads(early[6:])["choices"][0]["delta"] == {"content": ""}


@pytest.mark.parametrize("terminal", ["failed", "expired", "cancelled"])
def test_a_stream_that_fails_says_what_it_has_and_then_why(terminal: str) -> None:
    chunk = Chunk(first=1, epoch=1, tokens=(Token(0, 1, "a"),), terminal=terminal, code="worker_crash", message="why")
    frames = frames_of(Writer(job_of(2, "chat")).frames(chunk))
    assert json.loads(frames[0][6:])["choices"][0]["delta"]["content"] == "a"
    assert json.loads(frames[1][6:])["error"]["message"] == "why"
    assert frames[2] == DONE.strip()


def test_thinking_comes_apart_from_the_answer_and_is_counted() -> None:
    tokens = (Token(0, 1, "", Details(reasoning="hm")), Token(0, 2, "", Details(reasoning="m")), Token(0, 3, "Hi"))
    stream = Chunk(first=1, epoch=1, tokens=tokens, ends=(End(0, "stop", 3),), terminal="completed", reasoned=2)
    body = whole(job_of(1, "chat"), [stream])
    assert body["choices"][0]["message"] == {
        "role": "assistant",
        "content": "Hi",
        "refusal": None,
        "reasoning_content": "hmm",
    }
    assert body["usage"]["completion_tokens_details"] == {"reasoning_tokens": 2}
    chunks = cut(stream, [2])
    frames = frames_of(Writer(job_of(1, "chat")).frames(chunks[0]))
    assert json.loads(frames[0][6:])["choices"][0]["delta"]["reasoning_content"] == "hmm"
    resumed = frames_of(Writer(job_of(1, "chat", include_usage=True), after=2).frames(chunks[1]))
    assert json.loads(resumed[-2][6:])["usage"]["completion_tokens_details"] == {"reasoning_tokens": 2}


def test_an_answer_that_its_budget_has_cut_off_says_so_in_words_that_clients_know_and_in_ours() -> None:
    job = make_job(reply=ChatReply())
    last = Chunk(first=1, epoch=1, tokens=(Token(0, 65, "A"),), ends=(End(0, "length", 1),), terminal="completed")
    last = replace(last, code="insufficient_quota")
    events = [json.loads(each.removeprefix(b"data: ")) for each in frames_of(Writer(job).frames(last))[:-1]]
    assert events[-1]["choices"][0]["finish_reason"] == "length"
    assert events[-1]["axon"] == {"seq": 1, "stopped": "budget", "end": True}
    body = whole(job, [last])
    assert (body["choices"][0]["finish_reason"], body["axon"]) == ("length", {"stopped": "budget"})
    assert "axon" not in whole(job, [replace(last, code="")])


@pytest.mark.parametrize("terminal", ["completed", "failed"])
def test_a_ledger_tells_the_cost_of_the_whole_answer_to_a_reader_of_its_end_alone(terminal: str) -> None:
    rates = Rates(prompt=1_000_000_000, cached=100_000_000, output=2_000_000_000, currency="USD")
    job = make_job(prompt_ids=(1, 2, 3), price="price_1", rates=rates)
    tokens = tuple(Token(0, number, "a") for number in range(4))
    last = Chunk(first=1, epoch=1, tokens=tokens, terminal=terminal, cached=1, ledger=Ledger(queued=3, emitted=4))
    told = []
    for after in (0, 3):
        writer = Writer(job, after=after, with_ledger=True)
        frames = [json.loads(each[6:]) for each in frames_of(writer.frames(last.after(after)))[:-1]]
        told.append(frames[-1]["axon"]["ledger"])
    assert told[0] == told[1]
    assert (told[0]["price"], told[0]["cost"]) == ("price_1", {"amount": "0.0000101", "currency": "USD"})
    assert "price" not in whole(replace(job, price="", rates=None), [last], with_ledger=True)["axon"]["ledger"]


class Unhurried(Writer):
    """A writer that makes every frame from the beginning."""

    def _plain(self, chunk: Chunk) -> bytes:
        self._can_be_plain = False
        return self.frames(chunk)


@given(
    st.lists(st.text(max_size=3), min_size=2, max_size=8),
    st.lists(st.integers(0, 24), max_size=6),
    st.sampled_from(["chat", "completion"]),
    st.booleans(),
)
def test_a_frame_from_the_template_is_the_same_to_the_byte(
    texts: list[str], places: list[int], route: str, include_usage: bool
) -> None:
    chunks = cut(stream_of([texts], ["stop"]), places)
    job = job_of(1, route, include_usage=include_usage)
    quick, slow = Writer(job), Unhurried(job)
    assert [quick.frames(chunk) for chunk in chunks] == [slow.frames(chunk) for chunk in chunks]


@pytest.mark.parametrize("reply", [ChatReply(), CompletionReply()])
def test_a_move_and_a_fallback_are_told_in_the_first_and_last_frame_and_in_the_whole_answer(
    reply: ChatReply | CompletionReply,
) -> None:
    job = make_job("turn_1", fallback="spare", moved=Moved("small@v1", "other@v1", "fallback"), reply=reply)
    chunk = replace(stream_of([["a", "b", "c"]], ["stop"]), terminal="completed")
    told = {"fallback": "spare", "moved": {"from": "small@v1", "to": "other@v1", "reason": "fallback"}}
    cut = [
        replace(chunk, tokens=chunk.tokens[:1], ends=(), terminal=""),
        replace(chunk, first=2, tokens=chunk.tokens[1:]),
    ]
    writer = Writer(job)
    frames = [json.loads(each.removeprefix(b"data: ")) for each in frames_of(b"".join(map(writer.frames, cut)))[:-1]]
    axons = [{name: frame["axon"][name] for name in told if name in frame["axon"]} for frame in frames]
    assert axons == [told, *[{}] * (len(frames) - 2), told]
    assert whole(job, [chunk])["axon"] == told
    resumed = frames_of(Writer(job, after=1).frames(cut[1]))
    assert json.loads(resumed[-2].removeprefix(b"data: "))["axon"]["fallback"] == "spare"


def test_a_keep_alive_frame_says_how_a_turn_waits_until_it_runs() -> None:
    def told(frame: bytes) -> Any:
        body = json.loads(frame.removeprefix(b"data: "))
        assert body["choices"][0]["delta"] == {}
        return body["axon"].get("queue")

    writer = Writer(make_job(queued=2), wait=Wait(state=State.COLD, position=2, expected_s=9.0))
    assert writer.opening() == b""
    assert told(writer.silence()) == {"state": "cold", "position": 2, "expected_wait_s": 9.0}
    assert writer.queued(Wait(state=State.LOADING, position=1)) == b"", "no frame before the first token"
    assert told(writer.silence()) == {"state": "loading", "position": 1, "expected_wait_s": None}
    assert b"queue" not in writer.frames(Chunk(first=1, epoch=1, tokens=(Token(0, 1, "a"),)))
    assert told(writer.silence()) is None
