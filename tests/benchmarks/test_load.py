import asyncio
import json

import pytest
from benchmarks.measures.load import (
    Answer,
    Dechunker,
    Endpoint,
    Events,
    LoadError,
    complete,
    figures_of,
    make_prompt,
    to_answer,
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
