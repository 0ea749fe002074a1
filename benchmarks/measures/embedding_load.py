"""Embeddings asked of any OpenAI-style server over connections that stay open. Starts no server.

The client shares the cores with the server it measures, so it only keeps what comes; what it says is read afterwards.
"""

import asyncio
import base64
import json
import random
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.measures.figures import Figures, latencies_ms
from benchmarks.measures.load import Endpoint, LoadError, make_prompt

TIMEOUT_S = 120.0
_SEED = "embeddings"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A load: so many inputs in each request, so many requests at once, texts of so many words."""

    name: str
    num_inputs: int
    num_requests: int
    num_words: int
    rounds_of_requests: int
    """Requests of each connection in a round."""

    @property
    def sentence(self) -> str:
        inputs = "one input" if self.num_inputs == 1 else f"{self.num_inputs} inputs"
        return f"{inputs} a request, {self.num_requests} at once, {self.num_words} words each"


SHORT_WORDS, LONG_WORDS = 14, 198
"""With [CLS] and [SEP] 16 and 200 tokens: every word is one token of the vocabulary."""
KINDS = (
    Kind(name="one short", num_inputs=1, num_requests=1, num_words=SHORT_WORDS, rounds_of_requests=100),
    Kind(name="one long", num_inputs=1, num_requests=1, num_words=LONG_WORDS, rounds_of_requests=20),
    Kind(name="32 short in one", num_inputs=32, num_requests=1, num_words=SHORT_WORDS, rounds_of_requests=8),
    Kind(name="32 long in one", num_inputs=32, num_requests=1, num_words=LONG_WORDS, rounds_of_requests=2),
    Kind(name="32 short at once", num_inputs=1, num_requests=32, num_words=SHORT_WORDS, rounds_of_requests=8),
    Kind(name="32 long at once", num_inputs=1, num_requests=32, num_words=LONG_WORDS, rounds_of_requests=2),
)


def texts(kind: Kind, round_number: int, count: int) -> list[str]:
    """Texts that no round has had before; those of one load differ by up to a quarter in length where it has many."""
    numbers = random.Random(f"{_SEED}/{kind.name}/{round_number}")
    spread = kind.num_words // 8 if kind.num_inputs * kind.num_requests > 1 else 0
    return [
        make_prompt(f"{kind.name}/{round_number}/{index}", kind.num_words + numbers.randint(-spread, spread))
        for index in range(count)
    ]


class Connection:
    """One connection to a server; answers are kept as they came."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._endpoint.port, limit=1 << 22)

    async def ask(self, inputs: Sequence[str]) -> bytes:
        """The body of the answer; raises LoadError for any status but 200."""
        asked = {"model": self._endpoint.model, "input": list(inputs), "encoding_format": "base64"}
        body = json.dumps(asked).encode()
        lines = ["POST /v1/embeddings HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json"]
        lines += [f"{name}: {value}" for name, value in self._endpoint.headers]
        lines += [f"Content-Length: {len(body)}", "", ""]
        head = await self._sent("\r\n".join(lines).encode() + body)
        fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        answer = await self._reader.readexactly(int(fields["content-length"]))
        if " 200 " not in head.split("\r\n", 1)[0]:
            raise LoadError(f"{head.splitlines()[0]}: {answer[:300]!r}")
        return answer

    async def _sent(self, asked: bytes) -> str:
        """The head of the answer; a connection that the server has closed meanwhile is opened once more."""
        try:
            self._writer.write(asked)
            return (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except (asyncio.IncompleteReadError, ConnectionError):  # llama.cpp's server closes after 100 requests
            await self.aclose()
            await self.open()
            self._writer.write(asked)
            return (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")

    async def aclose(self) -> None:
        self._writer.close()


async def run_kind(endpoint: Endpoint, kind: Kind, round_number: int, share: float = 1.0) -> Figures:
    """One round; ``share`` of its requests. Figures: inputs/s, p50 and p99 of a request."""
    count = max(1, round(kind.rounds_of_requests * share))
    all_texts = texts(kind, round_number, kind.num_requests * kind.num_inputs * (count + 1))
    connections = [Connection(endpoint) for _ in range(kind.num_requests)]
    seconds: list[float] = []
    answers: list[bytes] = []
    try:
        async with asyncio.timeout(TIMEOUT_S):
            for each in connections:
                await each.open()
            batches = [all_texts[at : at + kind.num_inputs] for at in range(0, len(all_texts), kind.num_inputs)]
            await connections[0].ask(batches.pop())  # warms up

            async def loop(connection: Connection) -> None:
                for _ in range(count):
                    inputs, began = batches.pop(), time.perf_counter()
                    answers.append(await connection.ask(inputs))
                    seconds.append(time.perf_counter() - began)

            began = time.perf_counter()
            await asyncio.gather(*(loop(each) for each in connections))
            wall_s = time.perf_counter() - began
    except (OSError, TimeoutError, asyncio.IncompleteReadError, KeyError) as error:
        raise LoadError(f"{kind.name}: {error!r}") from error
    finally:
        for each in connections:
            await each.aclose()
    num_vectors = sum(len(vectors(answer)) for answer in answers)
    if num_vectors != (expected := kind.num_requests * kind.num_inputs * count):
        raise LoadError(f"{kind.name}: {num_vectors} vectors came for {expected} inputs")
    return {"inputs_per_s": num_vectors / wall_s, **latencies_ms(seconds)}


def vectors(answer: bytes) -> list[list[float]]:
    """The vectors of an answer, in the order of their inputs."""
    found = sorted(json.loads(answer)["data"], key=lambda each: int(each["index"]))
    raw = [base64.b64decode(each["embedding"]) for each in found]
    return [list(struct.unpack(f"<{len(each) // 4}f", each)) for each in raw]


async def vectors_of(endpoint: Endpoint, inputs: Sequence[str]) -> list[list[float]]:
    """The vectors of some texts, to compare servers by."""
    connection = Connection(endpoint)
    await connection.open()
    try:
        return vectors(await connection.ask(inputs))
    finally:
        await connection.aclose()
