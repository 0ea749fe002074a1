"""Users of several tenants at once, each asking again as soon as it is answered, for a while. Starts no server.

As in ``load``, what a stream said is read after it has ended. What comes after the time is over counts for nothing;
streams that are still open some seconds later are left.
"""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise

from benchmarks.measures.figures import Figures, percentile
from benchmarks.measures.load import Dechunker, Events, make_prompt

LINGER_S = 6.0
_READ_BYTES = 1 << 16
_MOST_RETRY_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """A tenant's users, all alike."""

    tenant: str
    keys: Sequence[str]
    num_streams: int
    num_tokens: int = 48
    num_words: int = 8
    tier: str = ""
    name: str = ""
    """Under which its answers are kept; its tenant's unless set."""


@dataclass(slots=True)
class Heard:
    """One request: when it was sent, and what came when."""

    started: float
    status: int = 0
    ended: float = 0.0
    """When the last byte came; 0 while it has not."""
    arrivals: list[tuple[float, bytes]] = field(default_factory=list)

    def tokens(self) -> list[tuple[float, int]]:
        """When how many tokens came."""
        seq, found = 0, []
        for moment, payload in self.arrivals:
            before, seq = seq, max(seq, json.loads(payload).get("axon", {}).get("seq", 0))
            if seq > before:
                found.append((moment, seq - before))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """What became of everybody's requests within a stretch of time."""

    start: float
    end: float
    heard: dict[str, list[Heard]]

    def num_tokens(self, *names: str) -> int:
        """That came within the time, to these or to all."""
        return sum(
            num
            for name in names or self.heard
            for each in self.heard[name]
            for moment, num in each.tokens()
            if self.start <= moment < self.end
        )

    def rate(self, *names: str) -> float:
        """Tokens a second."""
        return self.num_tokens(*names) / (self.end - self.start)

    def stream_rate(self, name: str) -> float:
        """Tokens a second of one stream while it runs, from its first token within the time to its last, in the middle
        of all."""
        rates = []
        for each in self.heard[name]:
            tokens = [(moment, num) for moment, num in each.tokens() if self.start <= moment < self.end]
            if len(tokens) > 1:
                rates.append(sum(num for _, num in tokens[1:]) / (tokens[-1][0] - tokens[0][0]))
        return percentile(rates, 0.5) if rates else 0.0

    def latencies(self, *names: str) -> Figures:
        """Time to the first token of what was asked within the time, and between two arrivals of tokens."""
        firsts, gaps = [], []
        for each in [each for name in names for each in self.heard[name] if self.start <= each.started < self.end]:
            moments = [moment for moment, _ in each.tokens()]
            if each.status == 200:
                firsts.append((moments[0] if moments else self.end + LINGER_S) - each.started)
            gaps += [after - before for before, after in pairwise(moments)]
        figures = {"num": float(len(firsts))}
        for name, values in (("ttft", firsts), ("itl", gaps)):
            for share in (0.5, 0.99):
                figures[f"{name}_p{100 * share:.0f}_ms"] = 1000 * percentile(values, share) if values else 0.0
        return figures

    def refusals_s(self) -> list[float]:
        """How long the server took to say no."""
        every = (each for heard in self.heard.values() for each in heard)
        return [each.ended - each.started for each in every if each.status in (429, 503) and each.ended]


async def run_crowd(
    port: int,
    model: str,
    parties: Sequence[Party],
    *,
    seconds: float,
    ramp_s: float = 2.0,
    settle_s: float = 4.0,
    watch: Callable[[], None] | None = None,
) -> Crowd:
    """Users come over ``ramp_s``; the first ``settle_s`` do not count. ``watch`` is called now and then."""
    heard: dict[str, list[Heard]] = {party.name or party.tenant: [] for party in parties}
    begun = time.perf_counter()
    until = begun + settle_s + seconds

    async def user(party: Party, number: int) -> None:
        key, name = party.keys[number % len(party.keys)], party.name or party.tenant
        asked = 0
        await asyncio.sleep(ramp_s * number / party.num_streams)
        while time.perf_counter() < until:
            asked += 1
            prompt = make_prompt(f"{name}/{number}/{asked}", party.num_words)
            each = Heard(time.perf_counter())
            heard[name].append(each)
            with suppress(TimeoutError, ConnectionError, asyncio.IncompleteReadError):
                async with asyncio.timeout(until + LINGER_S - time.perf_counter()):
                    await _ask(port, model, party, key, prompt, each)

    async def look() -> None:
        while watch is not None and time.perf_counter() < until:
            watch()
            await asyncio.sleep(0.5)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(look())
        for party in parties:
            for number in range(party.num_streams):
                tasks.create_task(user(party, number))
    return Crowd(start=begun + settle_s, end=until, heard=heard)


async def _ask(port: int, model: str, party: Party, key: str, prompt: str, heard: Heard) -> None:
    body = {
        "model": model,
        "prompt": prompt,
        "max_tokens": party.num_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        **({"service_tier": party.tier} if party.tier else {}),
    }
    data = json.dumps(body).encode()
    head = (
        f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(head.encode() + data)
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        heard.status = int(answer.split(b" ", 2)[1])
        if heard.status != 200:
            await reader.read()
            heard.ended = time.perf_counter()
            await asyncio.sleep(_retry_s(answer))
            return
        dechunker = Dechunker() if b"transfer-encoding: chunked" in answer else None
        events = Events()
        while not events.ended and (piece := await reader.read(_READ_BYTES)):
            now = time.perf_counter()
            payloads = events.feed(dechunker.feed(piece) if dechunker else piece)
            heard.arrivals += [(now, payload) for payload in payloads]
        heard.ended = time.perf_counter()
    finally:
        writer.close()


def _retry_s(head: bytes) -> float:
    found = [line for line in head.split(b"\r\n") if line.startswith(b"retry-after-ms:")]
    asked_s = int(found[0].partition(b":")[2]) / 1000 if found else _MOST_RETRY_S
    return min(asked_s, _MOST_RETRY_S)


def jain(values: Sequence[float]) -> float:
    """Jain's index of fairness: 1 when all have the same, 1/n when one has all."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 0.0
