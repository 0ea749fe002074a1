"""A batch, its runner, and ports that crash when they are told to. Tests nothing."""

import itertools
import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from axon.adapters.files.directory import DirectoryFiles
from axon.adapters.store.sqlite import SqliteStore
from axon.domain.batch import Batch, BatchState, errors_id, output_id
from axon.domain.tenants.tenant import Terms
from axon.gateway.batches.config import BatchesConfig
from axon.gateway.batches.driver import Driver
from axon.gateway.batches.driver_parts import DriverParts
from axon.gateway.batches.lines import Line
from axon.gateway.batches.verdict import Answer
from axon.runtime.clock import FakeClock

NAMES = ["a", "b", "c", "bad", "e", "retried"]
_PORTS = ("files", "bytes", "batches")


class Crash(BaseException):
    """The process is gone."""


class Fuse:
    """Counts the calls of ports, and crashes before or after one of them."""

    def __init__(self, at: int = 0, *, after: bool = False) -> None:
        self.left, self.after, self.num = at, after, 0

    def burn(self, *, after: bool) -> None:
        if after is not self.after:
            return
        self.num += 1
        if self.num == self.left:
            raise Crash

    def port(self, real: Any) -> Any:
        return _Port(real, self)


class _Port:
    def __init__(self, real: Any, fuse: Fuse) -> None:
        self._real, self._fuse = real, fuse

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._real, name)

        async def called(*args: Any, **kwargs: Any) -> Any:
            self._fuse.burn(after=False)
            found = await method(*args, **kwargs)
            self._fuse.burn(after=True)
            return found

        return method if name == "read" else called


class Turns:
    """The application: a key is answered once, and repeated with the same answer."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.num_run: Counter[str] = Counter()
        self.fuse = Fuse()

    def call(self, batch: Batch, line: Line, terms: Terms, attempt: int) -> "Call":
        return Call(self, f"{batch.id}/{line.number}/{attempt}", line.custom_id, attempt)


class Call:
    request_id = "req_1"

    def __init__(self, turns: Turns, key: str, name: str, attempt: int) -> None:
        self._turns, self._key, self._name, self._attempt = turns, key, name, attempt

    async def send(self) -> Answer:
        turns = self._turns
        turns.fuse.burn(after=False)
        if self._key not in turns.answers:
            turns.num_run[self._key] += 1
            status = 400 if self._name == "bad" else 500 if self._name == "retried" and self._attempt == 1 else 200
            turns.answers[self._key] = Answer(status=status, body=b'{"n":1}')
        turns.fuse.burn(after=True)
        return turns.answers[self._key]

    async def stop(self) -> None:
        pass


class World:
    """A store and a folder that outlive the runners."""

    def __init__(self, store: SqliteStore, files: DirectoryFiles) -> None:
        self.store, self.files = store, files
        self.clock, self.turns = FakeClock(), Turns()
        self._ids = itertools.count(1)

    async def batch(self, names: list[str] = NAMES) -> Batch:
        lines = [
            {"custom_id": n, "method": "POST", "url": "/v1/completions", "body": {"model": "m", "prompt": n}}
            for n in names
        ]

        async def pieces() -> AsyncIterator[bytes]:
            for line in lines:
                yield json.dumps(line).encode() + b"\n"

        number = next(self._ids)
        await self.files.put(f"file-{number}", pieces())
        now = self.clock.now()
        batch = Batch(
            id=f"batch_{number}",
            tenant="acme",
            endpoint="/v1/completions",
            input_file_id=f"file-{number}",
            created_at=now,
            expires_at=now + 1000,
        )
        await self.store.batches.add(batch, max_active=1000)
        return batch

    def driver(self, batch: Batch, fuse: Fuse) -> Driver:
        async def terms(tenant: str) -> Terms:
            return Terms()

        self.turns.fuse = fuse
        parts = DriverParts(
            config=BatchesConfig(lines_in_flight=2),
            files=fuse.port(self.store.files),
            bytes=fuse.port(self.files),
            batches=fuse.port(self.store.batches),
            calls=self.turns,  # type: ignore[arg-type]
            clock=self.clock,
            max_body_bytes=1000,
            check_model=lambda batch, terms, model: None,
            terms=terms,
        )
        return Driver(parts, batch)

    async def content(self, file_id: str) -> list[str]:
        if not file_id:
            return []
        data = b"".join([piece async for piece in self.files.read(file_id)])
        return [json.loads(line)["custom_id"] for line in data.splitlines()]

    async def check(self, batch_id: str, state: BatchState = BatchState.COMPLETED) -> Batch:
        """The batch has ended, and each of its lines is in one file, once."""
        batch = await self.store.batches.get(batch_id)
        assert batch is not None
        assert batch.state is state
        output, errors = await self.content(batch.output_file_id), await self.content(batch.error_file_id)
        assert sorted([*output, *errors]) == sorted(NAMES)
        assert batch.completed == len(output)
        shown = {
            file.id for file in await self.store.files.page("acme", after="", limit=1000) if batch_id[6:] in file.id
        }
        assert {each for each in shown if self.is_of(each, batch_id)} == {
            each for each in (batch.output_file_id, batch.error_file_id) if each
        }
        return batch

    @staticmethod
    def is_of(file_id: str, batch_id: str) -> bool:
        """Whether a file was written for this batch."""
        return file_id[:-8] in (output_id(batch_id, ""), errors_id(batch_id, ""))
