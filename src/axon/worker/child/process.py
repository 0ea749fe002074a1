"""The engine's process as its worker sees it: started, spoken to over a socket pair, ended. Knows no job."""

import asyncio
import contextlib
import itertools
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from axon.engine.config import EngineConfig
from axon.engine.protocol import path
from axon.engine.protocol.codec import Decoder, Failed, Start, Warm, encode
from axon.engine.protocol.crash_note import CrashNote, new_crash_note
from axon.engine.protocol.messages import Abort, Add, Erase, Ready, Record, Recorded, StepOutput, StopRecord
from axon.errors import AlreadyProfiled, AxonError, EngineDied
from axon.runtime.child import launch_module
from axon.runtime.framing import BadFrame
from axon.telemetry import logs

_READ_BYTES = 1 << 16
_STOP_S = 5.0
_PROFILE_MARGIN_S = 20.0
"""Longest wait beyond a profile's own seconds: it is sent between two steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """A started process that runs no engine yet, and this end of its socket pair."""

    process: asyncio.subprocess.Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    note: int
    """Descriptor of its crash note."""

    @property
    def is_alive(self) -> bool:
        return self.process.returncode is None

    def warm(self, config: EngineConfig, model_dir: Path | None = None) -> None:
        """Has it import what engines with this config need, and read the tokenizer of the model for grammars."""
        self.writer.write(encode(Warm(config=config, model_dir=str(model_dir or ""))))

    async def aclose(self) -> None:
        """Closes the socket, which ends the process; kills it if it has not ended after 5 s."""
        self.writer.transport.abort()  # not close(), which would wait for an engine that does not read
        os.close(self.note)
        try:
            async with asyncio.timeout(_STOP_S):
                await self.process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()


async def launch(python: str = "", environment: Mapping[str, str] | None = None) -> Launched:
    """Starts a process; raises ``EngineDied`` if the system does not let it. It has our own interpreter and environment
    unless others are named."""
    note = new_crash_note()
    log_flags = ("--json-logs",) if logs.writes_json() else ()
    try:
        child = await launch_module(
            "axon.engine.process",
            lambda socket_fd: ("--fd", str(socket_fd), "--note", str(note), *log_flags),
            pass_fds=[note],
            has_secrets=True,
            python=python,
            environment=environment,
        )
    except BaseException as error:
        os.close(note)
        if isinstance(error, OSError):
            raise EngineDied(f"The engine's process could not be started: {error.strerror}.") from error
        raise
    return Launched(process=child.process, reader=child.reader, writer=child.writer, note=note)


async def _launch_cold(config: EngineConfig, model_dir: Path | None) -> Launched:
    if config.kind == "vllm":
        return await launch(config.vllm_python, foreign_environment(os.environ))
    return await launch()


def foreign_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Our variables for a process in vLLM's environment: without our settings, which may have secrets, and without our
    Python's, whose packages are not for it. Of Axon's folders it finds the one that has nothing but ``axon``."""
    kept = {name: text for name, text in environ.items() if not name.startswith(("AXON_", "PYTHON", "VIRTUAL_ENV"))}
    return kept | {"PYTHONPATH": str(Path(path.__file__).parent)}


class EngineProcess:
    """One engine process; the supervisor makes a new one after a death."""

    def __init__(
        self,
        config: EngineConfig,
        model_dir: Path | None,
        *,
        take: Callable[[EngineConfig, Path | None], Awaitable[Launched]] = _launch_cold,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        """``take`` gives the process that becomes the engine; ``on_ready`` is called when the model is loaded."""
        self._config = config
        self._model_dir = model_dir
        self._take, self._on_ready = take, on_ready
        self._launched: Launched | None = None
        self._decoder = Decoder()
        self._unsent: list[bytes] = []
        """Messages of this pass of the event loop, which are sent together: each sending wakes the engine."""
        self._is_closed = False
        self._profiles: dict[int, asyncio.Future[bytes]] = {}
        self._profile_ids = itertools.count(1)

    @property
    def pid(self) -> int | None:
        return self._launched.process.pid if self._launched else None

    @property
    def in_step(self) -> frozenset[str]:
        """The sequence ids of the step in which the process died, from its crash note; empty before its first step."""
        if self._launched is None or self._is_closed:
            return frozenset()
        return CrashNote(self._launched.note).read()

    async def open(self, *, timeout_s: float) -> Ready:
        """Starts the process and waits until its model is loaded; raises ``EngineDied`` with the engine's message."""
        self._launched = await self._take(self._config, self._model_dir)
        self._send(Start(config=self._config, model_dir=str(self._model_dir or "")))
        try:
            async with asyncio.timeout(timeout_s):
                ready = await self._wait_until_ready()
        except TimeoutError:
            raise EngineDied(f"The engine was not ready after {timeout_s:g} s.") from None
        self._on_ready()
        return ready

    async def outputs(self) -> AsyncIterator[StepOutput]:
        """The output of each step, until the process ends."""
        try:
            while messages := await self._receive():
                for message in messages:
                    if isinstance(message, StepOutput):
                        yield message
                    elif isinstance(message, Recorded):
                        self._take_profile(message)
        finally:
            for future in self._profiles.values():
                if not future.done():
                    future.set_exception(EngineDied("The engine's process ended while it was profiled."))

    async def profile(self, kind: str, seconds: float) -> bytes:
        """Records a profile of the process and returns it packed. Raises ``AlreadyProfiled`` while another one is
        recorded, and ``EngineDied`` if the process ends meanwhile. Being cancelled ends the recording."""
        if self._launched is None or self._is_closed or not self._launched.is_alive:
            raise EngineDied("The engine's process is not running.")
        number = next(self._profile_ids)
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._profiles[number] = future
        try:
            self._send(Record(number, kind, seconds))
            async with asyncio.timeout(seconds + _PROFILE_MARGIN_S):
                return await future
        except asyncio.CancelledError:
            self._send(StopRecord(number))
            raise
        except TimeoutError:
            raise AxonError("The engine did not end its profile in time.", code="profile_timed_out") from None
        finally:
            del self._profiles[number]

    def _take_profile(self, recorded: Recorded) -> None:
        future = self._profiles.get(recorded.id)
        if future is None or future.done():
            return
        if recorded.code == AlreadyProfiled.code:
            future.set_exception(AlreadyProfiled())
        elif recorded.code:
            future.set_exception(AxonError(recorded.problem, code=recorded.code))
        else:
            future.set_result(recorded.packed)

    def add(self, sequence: Add) -> None:
        self._send(sequence)

    def abort(self, ids: list[str]) -> None:
        self._send(Abort(ids=ids))

    def erase(self, sessions: list[str]) -> None:
        self._send(Erase(sessions=sessions))

    def kill(self) -> None:
        """Ends the process at once."""
        if self._launched is not None:
            with contextlib.suppress(ProcessLookupError):
                self._launched.process.kill()

    async def aclose(self) -> None:
        """Ends the process; a second call does nothing."""
        if self._launched is not None and not self._is_closed:
            self._is_closed = True
            await self._launched.aclose()

    async def _wait_until_ready(self) -> Ready:
        while messages := await self._receive():
            for message in messages:
                if isinstance(message, Ready):
                    return message
                if isinstance(message, Failed):
                    raise EngineDied(f"The engine could not start: {message.message}")
        raise EngineDied("The engine's process ended before it was ready.")

    async def _receive(self) -> list[object]:
        """The next whole messages; an empty list when the process has gone."""
        assert self._launched is not None
        while True:
            try:
                data = await self._launched.reader.read(_READ_BYTES)
            except OSError:
                return []
            if not data:
                return []
            try:
                messages = self._decoder.feed(data)
            except BadFrame:
                return []  # a frame that cannot be read: the process is treated as dead
            if messages:
                return list(messages)

    def _send(self, message: Start | Add | Abort | Erase | Record | StopRecord) -> None:
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._flush)
        self._unsent.append(encode(message))

    def _flush(self) -> None:
        unsent, self._unsent = self._unsent, []
        if self._launched is not None and not self._launched.writer.is_closing():
            self._launched.writer.write(b"".join(unsent))
