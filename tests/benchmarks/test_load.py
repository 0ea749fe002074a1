import asyncio
import json

import pytest
from benchmarks.measures.clients import joined, to_shares
from benchmarks.measures.load import (
    Answer,
    Ask,
    Dechunker,
    Endpoint,
    Events,
    LoadError,
    Ran,
    busy_figures,
    complete,
    figures_of,
    make_prompt,
    run_asks,
    to_answer,
    to_request,
)


def event(text: str = "", **more: object) -> bytes:
    return json.dumps({"choices": [{"index": 0, "text": text}], **more}).encode()


def usage(num_tokens: int) -> bytes:
    return json.dumps({"choices": [], "usage": {"completion_tokens": num_tokens}}).encode()


def in_pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_chunked_body_is_the_same_however_it_is_cut(size: int) -> None:
    framed = b"5\r\nhello\r\n1;name=value\r\n \r\nB\r\nlarge world\r\n0\r\n\r\n"
    dechunker = Dechunker()
    assert b"".join(dechunker.feed(piece) for piece in in_pieces(framed, size)) == b"hello large world"


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_events_are_the_same_however_they_are_cut(size: int) -> None:
    events = Events()
    stream = b': a comment\n\ndata: {"a": 1}\n\ndata:{"b": 2}\r\n\r\ndata: [DONE]\n\n'
    payloads = [payload for piece in in_pieces(stream, size) for payload in events.feed(piece)]
    assert payloads == [b'{"a": 1}', b'{"b": 2}']
    assert events.ended


def test_tokens_are_counted_by_usage_because_an_event_may_hold_several() -> None:
    arrivals = [(1.0, event("two words")), (1.5, event("")), (3.0, event("!")), (3.1, usage(5))]
    answer = to_answer(0.5, arrivals, num_tokens=5)
    assert answer == Answer(started=0.5, stamps=(1.0, 3.0), num_tokens=5)
    assert answer.ttft_s == 0.5
    assert answer.tpot_s == 0.5


@pytest.mark.parametrize(
    "arrivals",
    [
        pytest.param([(1.0, event("x"))], id="without usage"),
        pytest.param([(1.0, event("x")), (1.0, usage(4))], id="too short"),
        pytest.param([(1.0, usage(5))], id="without text"),
        pytest.param([(1.0, b'{"error": {"message": "full"}}')], id="an error"),
    ],
)
def test_an_answer_that_is_not_what_was_asked_for_is_not_counted(arrivals: list[tuple[float, bytes]]) -> None:
    with pytest.raises(LoadError):
        to_answer(0.0, arrivals, num_tokens=5)


def test_a_rounds_rate_counts_all_tokens_over_the_whole_time() -> None:
    answers = [Answer(started=0.0, stamps=(first, 4.0), num_tokens=11) for first in (1.0, 2.0, 3.0)]
    assert figures_of(answers, wall_s=11.0) == {"tokens_per_s": 3.0, "ttft_p50_ms": 2000.0, "tpot_p50_ms": 200.0}


def delta(text: str = "", finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return json.dumps({"choices": [choice]}).encode()


def test_a_chats_answer_may_end_before_its_limit_and_says_why() -> None:
    told = b'{"choices": [], "usage": {"prompt_tokens": 31, "completion_tokens": 3}}'
    arrivals = [(1.0, delta()), (2.0, delta("Hi")), (3.0, delta(" you")), (3.5, delta(finish="stop")), (3.5, told)]
    answer = to_answer(0.0, arrivals, num_tokens=256, ends_itself=True)
    assert answer == Answer(started=0.0, stamps=(2.0, 3.0), num_tokens=3, num_prompt_tokens=31, finish="stop")
    with pytest.raises(LoadError):
        to_answer(0.0, arrivals, num_tokens=256)
    with pytest.raises(LoadError):
        to_answer(0.0, arrivals, num_tokens=2, ends_itself=True)


def test_an_answer_that_ends_before_it_says_anything_is_dated_by_its_end() -> None:
    arrivals = [(1.0, delta()), (2.5, delta(finish="stop")), (2.6, usage(1))]
    assert to_answer(0.0, arrivals, num_tokens=256, ends_itself=True).stamps == (2.5,)


def test_drafts_are_read_where_the_stream_reports_them() -> None:
    last = json.dumps(
        {"choices": [], "usage": {"completion_tokens": 1}, "timings": {"draft_n": 9, "draft_n_accepted": 4}}
    )
    answer = to_answer(0.0, [(1.0, event("x")), (1.0, last.encode())], num_tokens=1)
    assert (answer.num_drafted, answer.num_accepted) == (9, 4)


def test_only_the_time_counts_in_which_all_streams_were_busy() -> None:
    answers = (
        Answer(started=0.0, stamps=(1.0, 2.0), num_tokens=10, finish="stop"),
        Answer(started=2.0, stamps=(3.0, 4.0), num_tokens=10, finish="stop"),
        Answer(started=0.0, stamps=(2.0, 4.0, 6.0, 8.0), num_tokens=20, num_prompt_tokens=30, finish="length"),
    )
    ran = Ran(answers=answers, started=0.0, full_until=4.0, ended=8.0)
    figures = busy_figures(ran)
    assert figures["tokens_per_s"] == (10 + 10 + 10) / 4.0
    assert figures["ttft_p50_ms"] == 1000.0
    assert figures["answer_tokens"] == pytest.approx(40 / 3)
    assert figures["prompt_tokens"] == 10
    assert figures["ended_share"] == pytest.approx(2 / 3)


CHAT = Ask(prompt="<user>Hi<assistant>", message="Hi", max_tokens=9, temperature=0.8, seed=3, ends_itself=True)


def body_of(request: bytes) -> dict[str, object]:
    body: dict[str, object] = json.loads(request.partition(b"\r\n\r\n")[2])
    return body


def test_a_chat_goes_as_messages_or_as_the_prompt_that_its_template_makes() -> None:
    messages = to_request(Endpoint(port=1, model="any", takes_chats=True), CHAT)
    rendered = to_request(Endpoint(port=1, model="any"), CHAT)
    assert messages.startswith(b"POST /v1/chat/completions ")
    assert rendered.startswith(b"POST /v1/completions ")
    ours, theirs = body_of(messages), body_of(rendered)
    assert ours.pop("messages") == [{"role": "user", "content": "Hi"}]
    assert theirs.pop("prompt") == "<user>Hi<assistant>"
    assert ours == theirs, "the same sampling for all"
    assert ours.items() >= {"temperature": 0.8, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "seed": 3}.items()
    assert "ignore_eos" not in ours


def test_a_completion_is_greedy_and_ignores_the_models_end() -> None:
    body = body_of(to_request(Endpoint(port=1, model="any"), Ask(prompt="a b", max_tokens=5)))
    assert body.items() >= {"prompt": "a b", "max_tokens": 5, "temperature": 0, "ignore_eos": True}.items()
    assert "seed" not in body


async def test_all_streams_are_busy_until_one_finds_nothing_left_to_ask() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        for payload in (event("x"), usage(1)):
            writer.write(b"data: " + payload + b"\n\n")
        writer.write(b"data: [DONE]\n\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        endpoint = Endpoint(port=server.sockets[0].getsockname()[1], model="any")
        ran = await run_asks(endpoint, [Ask(prompt="p", max_tokens=1)] * 5, num_streams=2)
    assert len(ran.answers) == 5
    assert ran.started < ran.full_until <= ran.ended


def test_prompts_have_their_length_and_come_again_only_for_the_same_seed() -> None:
    assert len(make_prompt("0/axon/1", 128).split()) == 128
    assert make_prompt("0/axon/1", 128) == make_prompt("0/axon/1", 128)
    assert make_prompt("0/axon/1", 128)[:40] != make_prompt("0/axon/2", 128)[:40]


async def test_a_refusal_is_told_with_the_servers_own_words() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfull")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        endpoint = Endpoint(port=server.sockets[0].getsockname()[1], model="any")
        with pytest.raises(LoadError, match="429 too many requests: full"):
            await complete(endpoint, "a prompt", 5)


def ran(*moments: float) -> Ran:
    started, full_until, ended = moments
    answer = Answer(started=started, stamps=(ended,), num_tokens=1)
    return Ran(answers=(answer,), started=started, full_until=full_until, ended=ended)


def test_several_clients_share_requests_and_streams_evenly() -> None:
    asks = [Ask(prompt=str(number), max_tokens=1) for number in range(10)]
    shares = to_shares(asks, 7, 3)
    assert [num for _, num in shares] == [3, 2, 2]
    assert [len(part) for part, _ in shares] == [4, 3, 3]
    assert sorted(ask.prompt for part, _ in shares for ask in part) == sorted(ask.prompt for ask in asks)
    assert len(to_shares(asks, 2, 3)) == 2, "a client without a stream asks for nothing"


def test_the_load_of_several_clients_begins_with_the_first_and_ends_with_the_last() -> None:
    whole = joined([ran(2.0, 5.0, 7.0), ran(1.0, 6.0, 8.0)])
    assert (whole.started, whole.full_until, whole.ended) == (1.0, 5.0, 8.0)
    assert len(whole.answers) == 2
