"""Streaming completions and chats against any OpenAI-style server, a fixed number at once, over plain sockets. Starts
no server.

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
    takes_chats: bool = False
    """Whether a chat is sent as messages; otherwise as a completion of the prompt that the client has rendered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request: exactly ``max_tokens`` greedy tokens, or a sampled answer that the model ends itself."""

    prompt: str
    """The text to complete; of a chat, its message rendered by the model's chat template."""
    message: str = ""
    """A chat's one message, of the user; empty for a completion."""
    max_tokens: int
    temperature: float = 0.0
    seed: int = 0
    ends_itself: bool = False
    """Whether the model's end token ends the answer before ``max_tokens``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer: when it was asked for, when text came, and how many tokens that was."""

    started: float
    stamps: tuple[float, ...]
    num_tokens: int
    num_prompt_tokens: int = 0
    finish: str = ""
    """Why it ended, in the server's word: ``stop`` or ``length``."""
    num_drafted: int = 0
    """Draft tokens of speculative decoding, where the server's stream reports them (llama.cpp)."""
    num_accepted: int = 0

    @property
    def ttft_s(self) -> float:
        """Until the first text."""
        return self.stamps[0] - self.started

    @property
    def tpot_s(self) -> float:
        """Between two tokens, on the average of the stream."""
        return (self.stamps[-1] - self.stamps[0]) / max(1, self.num_tokens - 1)

    def tokens_until(self, moment: float) -> float:
        """Tokens that had come by then; those of an event that holds several are spread evenly over all events."""
        return self.num_tokens * sum(stamp <= moment for stamp in self.stamps) / len(self.stamps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """The answers of a load, and its times on the clock of their stamps."""

    answers: tuple[Answer, ...]
    started: float
    full_until: float
    """When the first stream found nothing left to ask: until then all streams were busy."""
    ended: float


def make_prompt(seed: str, num_words: int) -> str:
    """Common words in a random order; another seed shares no prefix to speak of."""
    numbers = random.Random(seed)
    return " ".join(numbers.choice(_WORDS) for _ in range(num_words))


async def run_load(
    endpoint: Endpoint, prompts: Sequence[str], *, num_streams: int, num_tokens: int, ramp_s: float = 0.0
) -> tuple[list[Answer], float]:
    """Asks for all, ``num_streams`` at once, who come over ``ramp_s``; returns the answers and the seconds it took."""
    asks = [Ask(prompt=prompt, max_tokens=num_tokens) for prompt in prompts]
    ran = await run_asks(endpoint, asks, num_streams=num_streams, ramp_s=ramp_s)
    return list(ran.answers), ran.ended - ran.started


async def run_asks(endpoint: Endpoint, asks: Sequence[Ask], *, num_streams: int, ramp_s: float = 0.0) -> Ran:
    """Asks for all, ``num_streams`` at once, who come over ``ramp_s``."""
    waiting = iter(asks)
    answers: list[Answer] = []
    idle: list[float] = []

    async def stream(number: int) -> None:
        await asyncio.sleep(ramp_s * number / num_streams)
        for ask in waiting:
            answers.append(await _insist(endpoint, ask))
        idle.append(time.perf_counter())

    started = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for number in range(num_streams):
            tasks.create_task(stream(number))
    return Ran(answers=tuple(answers), started=started, full_until=min(idle), ended=time.perf_counter())


def busy_figures(ran: Ran) -> Figures:
    """A round of answers that end by themselves: the rate counts only while all streams were busy, since otherwise
    the length of the last answers would decide it."""
    answers = ran.answers
    return {
        "tokens_per_s": sum(each.tokens_until(ran.full_until) for each in answers) / (ran.full_until - ran.started),
        "ttft_p50_ms": 1000 * statistics.median(answer.ttft_s for answer in answers),
        "tpot_p50_ms": 1000 * statistics.median(answer.tpot_s for answer in answers),
        "answer_tokens": statistics.mean(answer.num_tokens for answer in answers),
        "prompt_tokens": statistics.mean(answer.num_prompt_tokens for answer in answers),
        "ended_share": statistics.mean(answer.finish == "stop" for answer in answers),
    }


def figures_of(answers: Sequence[Answer], wall_s: float) -> Figures:
    """A round of answers of one length: the rate counts all of it."""
    return {
        "tokens_per_s": sum(answer.num_tokens for answer in answers) / wall_s,
        "ttft_p50_ms": 1000 * statistics.median(answer.ttft_s for answer in answers),
        "tpot_p50_ms": 1000 * statistics.median(answer.tpot_s for answer in answers),
    }


async def _insist(endpoint: Endpoint, ask: Ask) -> Answer:
    """Asks again where the server is too busy, within reason; the time to the first token counts from the last time."""
    for attempt in range(_ATTEMPTS):
        try:
            return await answer_to(endpoint, ask)
        except TooBusy:
            if attempt == _ATTEMPTS - 1:
                raise
            await asyncio.sleep(_RETRY_S)
    raise AssertionError


async def complete(endpoint: Endpoint, prompt: str, num_tokens: int) -> Answer:
    """One streamed completion, greedy, its end token ignored, on a connection of its own."""
    return await answer_to(endpoint, Ask(prompt=prompt, max_tokens=num_tokens))


async def answer_to(endpoint: Endpoint, ask: Ask) -> Answer:
    """The answer to one request, streamed on a connection of its own."""
    async with asyncio.timeout(TIMEOUT_S):
        started = time.perf_counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
        try:
            writer.write(to_request(endpoint, ask))
            arrivals = await _read_events(reader)
        finally:
            writer.close()
    return to_answer(started, arrivals, ask.max_tokens, ends_itself=ask.ends_itself)


def to_answer(
    started: float, arrivals: Sequence[tuple[float, bytes]], num_tokens: int, *, ends_itself: bool = False
) -> Answer:
    """Reads the events of a stream; raises LoadError where it failed or has another length than was asked for."""
    stamps: list[float] = []
    usage: dict[str, int] = {}
    timings: dict[str, int] = {}
    finish, finished = "", 0.0
    for moment, payload in arrivals:
        event = json.loads(payload)
        if "error" in event:
            raise LoadError(str(event["error"]))
        usage = event.get("usage") or usage
        timings = event.get("timings") or timings
        for choice in event.get("choices", ()):
            if choice.get("text") or choice.get("delta", {}).get("content"):
                stamps.append(moment)
            if choice.get("finish_reason"):
                finish, finished = choice["finish_reason"], moment
    counted = usage.get("completion_tokens")
    if ends_itself and finish and not stamps:
        stamps = [finished]  # the model ended its answer before it said anything
    is_whole = counted is not None and (0 < counted <= num_tokens if ends_itself else counted == num_tokens)
    if counted is None or not is_whole or not stamps:
        raise LoadError(f"{counted} tokens in {len(stamps)} events came, {num_tokens} tokens were asked for")
    return Answer(
        started=started,
        stamps=tuple(stamps),
        num_tokens=counted,
        num_prompt_tokens=usage.get("prompt_tokens") or 0,
        finish=finish,
        num_drafted=timings.get("draft_n", 0),
        num_accepted=timings.get("draft_n_accepted", 0),
    )


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


def to_request(endpoint: Endpoint, ask: Ask) -> bytes:
    """The bytes of a request."""
    body: dict[str, object] = {
        "model": endpoint.model,
        "max_tokens": ask.max_tokens,
        "temperature": ask.temperature,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if ask.temperature:  # the same distribution everywhere: some servers cut it by default
        body |= {"top_p": 1.0, "top_k": 0, "min_p": 0.0, "seed": ask.seed}
    if not ask.ends_itself:
        body["ignore_eos"] = True
    if ask.message and endpoint.takes_chats:
        path, body["messages"] = "/v1/chat/completions", [{"role": "user", "content": ask.message}]
    else:
        path, body["prompt"] = "/v1/completions", ask.prompt
    data = json.dumps(body).encode()
    headers = {
        "Host": f"127.0.0.1:{endpoint.port}",
        "Content-Type": "application/json",
        "Content-Length": str(len(data)),
        "Connection": "close",
        **dict(endpoint.headers),
    }
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + data


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
