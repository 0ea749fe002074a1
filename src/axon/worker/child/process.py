"""The engine's process as its worker sees it: started, spoken to over a socket pair, ended. Knows no job."""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from axon.engine.config import EngineConfig
from axon.engine.protocol.codec import Decoder, Failed, Start, Warm, encode
from axon.engine.protocol.crash_note import CrashNote, new_crash_note
from axon.engine.protocol.messages import Abort, Add, Ready, StepOutput
from axon.errors import EngineDied
from axon.runtime.framing import BadFrame

_READ_BYTES = 1 << 16
_STOP_S = 5.0


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

    def warm(self, config: EngineConfig) -> None:
        """Has it import what engines with this config need."""
        self.writer.write(encode(Warm(config=config)))

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


async def launch() -> Launched:
    """Starts a process; raises ``EngineDied`` if the system does not let it."""
    ours, theirs = socket.socketpair()
    note = new_crash_note()
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "axon.engine.process", "--fd", str(theirs.fileno()), "--note", str(note)),
            pass_fds=[theirs.fileno(), note],
            start_new_session=True,  # a signal to our process group must not end the engine before us
        )
    except OSError as error:
        ours.close()
        os.close(note)
        raise EngineDied(f"The engine's process could not be started: {error.strerror}.") from error
    finally:
        theirs.close()
    reader, writer = await asyncio.open_connection(sock=ours)
    return Launched(process=process, reader=reader, writer=writer, note=note)


async def _launch_cold(config: EngineConfig) -> Launched:
    return await launch()


class EngineProcess:
    """One engine process; the supervisor makes a new one after a death."""

    def __init__(
        self,
        config: EngineConfig,
        model_dir: Path | None,
        *,
        take: Callable[[EngineConfig], Awaitable[Launched]] = _launch_cold,
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
        self._launched = await self._take(self._config)
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
        while messages := await self._receive():
            for message in messages:
                if isinstance(message, StepOutput):
                    yield message

    def add(self, sequence: Add) -> None:
        self._send(sequence)

    def abort(self, ids: list[str]) -> None:
        self._send(Abort(ids=ids))

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

    def _send(self, message: Start | Add | Abort) -> None:
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._flush)
        self._unsent.append(encode(message))

    def _flush(self) -> None:
        unsent, self._unsent = self._unsent, []
        if self._launched is not None and not self._launched.writer.is_closing():
            self._launched.writer.write(b"".join(unsent))
