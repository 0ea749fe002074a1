"""The engine process: ``python -m axon.engine.process --fd N``. Frames in, frames out; knows no worker.

In: ``Warm`` if it is a spare, ``Start``, then ``Add`` and ``Abort``. Out: ``Ready`` (or ``Failed``), then one
``StepOutput`` a step.
It ends when its peer closes the socket, so it never outlives the worker that started it.
"""

import argparse
import logging
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Protocol

from axon.engine.config import EngineConfig
from axon.engine.protocol.codec import Decoder, Failed, Message, Start, Warm, encode
from axon.engine.protocol.crash_note import CrashNote
from axon.engine.protocol.messages import Abort, Add, Ready, StepOutput
from axon.errors import AxonError

logger = logging.getLogger(__name__)

ENGINE, SPARE = "axon-engine", "axon-spare"
"""The process's name as an engine, and before it as a spare; at most 15 characters."""
_RECEIVE_BYTES = 1 << 20
_IDLE_CHECK_S = 1.0


class Steps(Protocol):
    """The engine as this process uses it."""

    @property
    def has_work(self) -> bool: ...
    def ready(self) -> Ready: ...
    def add(self, add: Add) -> None: ...
    def abort(self, ids: list[str]) -> None: ...
    def note_steps(self, note: Callable[[Sequence[str]], None]) -> None: ...
    def step(self) -> StepOutput: ...
    def tend(self) -> bool: ...
    def prepare(self) -> None: ...
    def check(self) -> None: ...
    def close(self) -> None: ...


class Hangup(Exception):
    """The peer closed the socket."""


class Channel:
    """Messages over a connected stream socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._decoder = Decoder()

    def send(self, message: Message) -> None:
        """Writes a whole frame; waits while the peer does not read."""
        try:
            self._socket.settimeout(None)
            self._socket.sendall(encode(message))
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Hangup from error

    def receive(self, timeout_s: float | None) -> list[Message]:
        """Returns the messages that have come; waits up to ``timeout_s`` seconds for one (None: for ever)."""
        self._socket.settimeout(timeout_s)
        try:
            data = self._socket.recv(_RECEIVE_BYTES)
        except (TimeoutError, BlockingIOError):
            return []
        except ConnectionResetError as error:
            raise Hangup from error
        if not data:
            raise Hangup
        return self._decoder.feed(data)


def start_engine(start: Start) -> Steps:
    """Builds the engine that ``start`` asks for."""
    if start.config.kind == "echo":
        from axon.engine.echo import EchoEngine

        return EchoEngine(start.config)
    from axon.engine.engine import Engine

    return Engine(start.config, Path(start.model_dir))


def serve(channel: Channel, note: CrashNote | None = None) -> int:
    """Runs an engine over the channel until the peer hangs up; returns the exit code."""
    try:
        start, rest = _receive_start(channel)
        try:
            engine = start_engine(start)
        except AxonError as error:  # a sentence for people: the place in the code would only hide it
            channel.send(Failed(error.message))
            return 1
        except Exception as error:
            traceback.print_exc()
            channel.send(Failed(f"{type(error).__name__}: {error}"))
            return 1
        if note is not None:
            engine.note_steps(note.write)
        with closing(engine):
            channel.send(engine.ready())
            _take(engine, rest)
            while True:
                messages = _receive_work(channel, engine)
                _take(engine, messages)
                if engine.has_work or messages:  # without work a step still reports the blocks that an abort freed
                    channel.send(engine.step())
    except Hangup:
        return 0


def warm_up(config: EngineConfig) -> None:
    """Imports what engines with this config need; an error is logged and left to ``start_engine``, which reports it."""
    import axon.engine.engine  # noqa: F401
    from axon.engine import backend

    try:
        backend.warm_up(config)
    except Exception as error:
        logger.warning("the spare engine process could not prepare itself: %s", error)


def _receive_start(channel: Channel) -> tuple[Start, list[Message]]:
    messages = _receive_some(channel)
    if isinstance(first := messages[0], Warm):
        _name_process(SPARE)
        warm_up(first.config)
        messages = messages[1:] or _receive_some(channel)
    start, *rest = messages
    if not isinstance(start, Start):
        raise TypeError(f"the first frame must be Start, not {type(start).__name__}")
    _name_process(ENGINE)
    return start, rest


def _name_process(name: str) -> None:
    """Sets the process's name, which ``top`` and ``ps -o comm`` show; only Linux has one."""
    with suppress(OSError):
        Path("/proc/self/comm").write_text(name)


def _receive_some(channel: Channel) -> list[Message]:
    while not (messages := channel.receive(None)):
        pass
    return messages


def _take(engine: Steps, messages: list[Message]) -> None:
    for message in messages:
        match message:
            case Add():
                engine.add(message)
            case Abort():
                engine.abort(message.ids)
            case _:
                raise TypeError(f"an engine does not take {type(message).__name__}")


def _receive_work(channel: Channel, engine: Steps) -> list[Message]:
    """Waits only if the engine is idle and has started whole.

    After an idle second it proves its bookkeeping, and prepares for grammars, which would hold up its streams later.
    """
    if engine.has_work or engine.tend():
        return channel.receive(0.0)
    messages = channel.receive(_IDLE_CHECK_S)
    if messages:
        return messages
    engine.check()
    engine.prepare()
    return channel.receive(None)


def main() -> int:
    """Serves the socket whose descriptor the parent passed."""
    parser = argparse.ArgumentParser(prog="axon.engine.process")
    parser.add_argument("--fd", type=int, required=True, help="descriptor of a connected stream socket")
    parser.add_argument("--note", type=int, help="descriptor of the crash note")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-c belongs to the parent, which closes the socket
    options = parser.parse_args()
    logging.basicConfig(format="axon: %(message)s")  # as the parent says what takes its time
    with socket.socket(fileno=options.fd) as sock:
        return serve(Channel(sock), None if options.note is None else CrashNote(options.note))


if __name__ == "__main__":
    sys.exit(main())
