"""An engine's process over a real socket, with the worker's end of it in a test."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import TypeVar

from axon.engine.protocol.codec import Decoder, Message, encode
from axon.engine.protocol.crash_note import CrashNote, new_crash_note
from axon.engine.protocol.messages import StepOutput

T = TypeVar("T")


class Peer:
    """The worker's end."""

    def __init__(self, python: str = sys.executable, environment: Mapping[str, str] | None = None) -> None:
        self.note = new_crash_note()
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(60)
        with theirs:
            command = [python, "-m", "axon.engine.process", "--fd", str(theirs.fileno()), "--note", str(self.note)]
            descriptors = [theirs.fileno(), self.note]
            self.process = subprocess.Popen(command, pass_fds=descriptors, stderr=subprocess.PIPE, env=environment)
        self._decoder = Decoder()
        self._is_closed, self._errors = False, b""
        self._messages: list[Message] = []

    def send(self, *messages: Message) -> None:
        self.socket.sendall(b"".join(map(encode, messages)))

    def receive(self, kind: type[T]) -> T:
        while not self._messages:
            data = self.socket.recv(1 << 16)
            assert data, "the engine hung up"
            self._messages += self._decoder.feed(data)
        message = self._messages.pop(0)
        assert isinstance(message, kind)
        return message

    def receive_until(self, done: Callable[[StepOutput], bool]) -> list[StepOutput]:
        outputs = [self.receive(StepOutput)]
        while not done(outputs[-1]):
            outputs.append(self.receive(StepOutput))
        return outputs

    def in_step(self) -> frozenset[str]:
        """The sequences of the step that runs, or in which the process died."""
        return CrashNote(self.note).read()

    def close(self) -> tuple[int, str]:
        """Hangs up; returns the exit code and what stands on stderr."""
        self.socket.close()
        if not self._is_closed:
            self._is_closed = True
            os.close(self.note)
            self._errors = self.process.communicate(timeout=60)[1]
        return self.process.returncode, self._errors.decode()


def has_finished(output: StepOutput) -> bool:
    return any(emitted.finish for emitted in output.emitted)
