"""The engine's process as its worker sees it: started, spoken to over a socket pair, ended. Knows no job."""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from axon.engine.config import EngineConfig
from axon.engine.protocol.codec import Decoder, Failed, Start, encode
from axon.engine.protocol.crash_note import CrashNote, new_crash_note
from axon.engine.protocol.messages import Abort, Add, Ready, StepOutput
from axon.errors import EngineDied
from axon.runtime.framing import BadFrame

_READ_BYTES = 1 << 16
_STOP_S = 5.0


class EngineProcess:
    """One engine process; the supervisor makes a new one after a death."""

    def __init__(self, config: EngineConfig, model_dir: Path | None) -> None:
        self._config = config
        self._model_dir = model_dir
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._decoder = Decoder()
        self._unsent: list[bytes] = []
        """Messages of this pass of the event loop, which are sent together: each sending wakes the engine."""
        self._note: int | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def in_step(self) -> frozenset[str]:
        """The sequence ids of the step in which the process died, from its crash note; empty before its first step."""
        return frozenset() if self._note is None else CrashNote(self._note).read()

    async def open(self, *, timeout_s: float) -> Ready:
        """Starts the process and waits until its model is loaded; raises ``EngineDied`` with the engine's message."""
        ours, theirs = socket.socketpair()
        self._note = new_crash_note()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "axon.engine.process", "--fd", str(theirs.fileno()), "--note", str(self._note)),
                pass_fds=[theirs.fileno(), self._note],
                start_new_session=True,  # a signal to our process group must not end the engine before us
            )
        except OSError as error:
            ours.close()
            raise EngineDied(f"The engine's process could not be started: {error.strerror}.") from error
        finally:
            theirs.close()
        self._reader, self._writer = await asyncio.open_connection(sock=ours)
        self._send(Start(config=self._config, model_dir=str(self._model_dir or "")))
        try:
            async with asyncio.timeout(timeout_s):
                return await self._wait_until_ready()
        except TimeoutError:
            raise EngineDied(f"The engine was not ready after {timeout_s:g} s.") from None

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
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def aclose(self) -> None:
        """Closes the socket, which ends the process; kills it if it has not ended after 5 s."""
        if self._writer is not None:
            self._writer.transport.abort()  # not close(), which would wait for an engine that does not read
        if self._note is not None:
            os.close(self._note)
            self._note = None
        if self._process is None:
            return
        try:
            async with asyncio.timeout(_STOP_S):
                await self._process.wait()
        except TimeoutError:
            self.kill()
            await self._process.wait()

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
        assert self._reader is not None
        while True:
            try:
                data = await self._reader.read(_READ_BYTES)
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
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(b"".join(unsent))
