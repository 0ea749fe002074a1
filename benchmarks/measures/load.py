"""Streaming completions against any OpenAI-style server, a fixed number at once, over plain sockets. Starts nothing.

The client shares the cores with the server it measures, so while a stream runs it only notes when bytes came; what
they say is read afterwards.
"""

import asyncio
import json
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.measures.figures import Figures

TIMEOUT_S = 600.0
_READ_BYTES = 1 << 16
_ATTEMPTS, _RETRY_S = 20, 0.5
_VOCABULARY = (
    "air animal art back bird boat body book bread bridge car chair city cloud coast color corner cup day door earth "
    "evening farm field fire fish floor flower food forest friend garden glass gold grass green hair hand hill horse "
    "house ice island king lake land leaf letter light line list market metal milk moon morning mouth music name night "
    "paper person picture plane plant price rain river road rock room salt school sea sound south spring star stone "
    "story street summer sun table tail tree uncle valley voice wall water west wind window winter wood word year"
)
_WORDS = tuple(_VOCABULARY.split())


class LoadError(Exception):
    """A server's answer is no answer to count."""


class TooBusy(LoadError):
    """503: asked again, as every client does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where completions are asked for."""

    port: int
    model: str
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One completion: when it was asked for, when text came, and how many tokens that was."""

    started: float
    stamps: tuple[float, ...]
    num_tokens: int

    @property
    def ttft_s(self) -> float:
        """Until the first text."""
        return self.stamps[0] - self.started

    @property
    def tpot_s(self) -> float:
        """Between two tokens, on the average of the stream."""
        return (self.stamps[-1] - self.stamps[0]) / max(1, self.num_tokens - 1)


def make_prompt(seed: str, num_words: int) -> str:
    """Common words in a random order; another seed shares no prefix to speak of."""
    numbers = random.Random(seed)
    return " ".join(numbers.choice(_WORDS) for _ in range(num_words))


async def run_load(
    endpoint: Endpoint, prompts: Sequence[str], *, num_streams: int, num_tokens: int, ramp_s: float = 0.0
) -> tuple[list[Answer], float]:
    """Asks for all, ``num_streams`` at once, who come over ``ramp_s``; returns the answers and the seconds it took."""
    waiting = iter(prompts)
    answers: list[Answer] = []

    async def stream(number: int) -> None:
        await asyncio.sleep(ramp_s * number / num_streams)
        for prompt in waiting:
            answers.append(await _insist(endpoint, prompt, num_tokens))

    started = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for number in range(num_streams):
            tasks.create_task(stream(number))
    return answers, time.perf_counter() - started


def figures_of(answers: Sequence[Answer], wall_s: float) -> Figures:
    """What a round comes to."""
    return {
        "tokens_per_s": sum(answer.num_tokens for answer in answers) / wall_s,
        "ttft_p50_ms": 1000 * statistics.median(answer.ttft_s for answer in answers),
        "tpot_p50_ms": 1000 * statistics.median(answer.tpot_s for answer in answers),
    }


async def _insist(endpoint: Endpoint, prompt: str, num_tokens: int) -> Answer:
    """Asks again where the server is too busy, within reason; the time to the first token counts from the last time."""
    for attempt in range(_ATTEMPTS):
        try:
            return await complete(endpoint, prompt, num_tokens)
        except TooBusy:
            if attempt == _ATTEMPTS - 1:
                raise
            await asyncio.sleep(_RETRY_S)
    raise AssertionError


async def complete(endpoint: Endpoint, prompt: str, num_tokens: int) -> Answer:
    """One streamed completion, greedy, its end token ignored, on a connection of its own."""
    body = {
        "model": endpoint.model,
        "prompt": prompt,
        "max_tokens": num_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    async with asyncio.timeout(TIMEOUT_S):
        started = time.perf_counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
        try:
            writer.write(_request(endpoint, json.dumps(body).encode()))
            arrivals = await _read_events(reader)
        finally:
            writer.close()
    return to_answer(started, arrivals, num_tokens)


def to_answer(started: float, arrivals: Sequence[tuple[float, bytes]], num_tokens: int) -> Answer:
    """Reads the events of a stream; raises LoadError where it failed or has another length than was asked for."""
    stamps: list[float] = []
    counted: int | None = None
    for moment, payload in arrivals:
        event = json.loads(payload)
        if "error" in event:
            raise LoadError(str(event["error"]))
        if usage := event.get("usage"):
            counted = usage["completion_tokens"]
        if any(choice.get("text") for choice in event.get("choices", ())):
            stamps.append(moment)
    if counted != num_tokens or not stamps:
        raise LoadError(f"{counted} tokens in {len(stamps)} events came, {num_tokens} tokens were asked for")
    return Answer(started=started, stamps=tuple(stamps), num_tokens=counted)


@dataclass(slots=True)
class Dechunker:
    """Takes HTTP's chunked framing off a body that comes in arbitrary pieces."""

    _buffer: bytes = b""
    _left: int = 0
    """Bytes of the present chunk still to come, the line end behind it included."""

    def feed(self, data: bytes) -> bytes:
        """The body's bytes in what has come."""
        self._buffer += data
        out = b""
        while self._buffer:
            if not self._left:
                size, newline, rest = self._buffer.partition(b"\r\n")
                if not newline:
                    break
                self._left, self._buffer = int(size.partition(b";")[0], 16) + 2, rest
            piece, self._buffer = self._buffer[: self._left], self._buffer[self._left :]
            out += piece[: max(0, self._left - 2)]
            self._left -= len(piece)
        return out


@dataclass(slots=True)
class Events:
    """The payloads of a server-sent stream, in arbitrary pieces; the end mark is not one of them."""

    ended: bool = False
    _buffer: bytes = field(default=b"")

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads that are complete now."""
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        return list(self._payloads(lines))

    def _payloads(self, lines: Sequence[bytes]) -> Iterator[bytes]:
        for line in lines:
            if not line.startswith(b"data:"):
                continue
            payload = line[5:].strip()
            if payload == b"[DONE]":
                self.ended = True
            else:
                yield payload


def _request(endpoint: Endpoint, body: bytes) -> bytes:
    headers = {
        "Host": f"127.0.0.1:{endpoint.port}",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Connection": "close",
        **dict(endpoint.headers),
    }
    lines = ["POST /v1/completions HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def _read_events(reader: asyncio.StreamReader) -> list[tuple[float, bytes]]:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    status = head.partition(b"\r\n")[0].decode()
    if status.split()[1] != "200":
        kind = TooBusy if status.split()[1] == "503" else LoadError
        raise kind(f"{status}: {(await reader.read(2000)).decode(errors='replace')}")
    dechunker = Dechunker() if b"transfer-encoding: chunked" in head else None
    events, arrivals = Events(), []
    while not events.ended and (data := await reader.read(_READ_BYTES)):
        now = time.perf_counter()
        arrivals += [(now, payload) for payload in events.feed(dechunker.feed(data) if dechunker else data)]
    return arrivals
