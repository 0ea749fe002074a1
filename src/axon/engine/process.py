"""The engine process: ``python -m axon.engine.process --fd N``. Frames in, frames out; knows no worker.

In: ``Warm`` if it is a spare, ``Start``, then ``Add``, ``Abort``, ``Erase``, ``Record`` and ``StopRecord``. Out:
``Ready`` (or ``Failed``), then one ``StepOutput`` a step, and a ``Recorded`` for each ``Record``.
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
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol

from axon.engine.config import EngineConfig, for_device
from axon.engine.grammar.vocabulary import Vocabulary
from axon.engine.phases import timeline
from axon.engine.protocol.codec import Decoder, Failed, Message, Start, Warm, encode
from axon.engine.protocol.crash_note import CrashNote
from axon.engine.protocol.messages import Abort, Add, Erase, Ready, StepOutput
from axon.engine.recording import Recordings
from axon.engine.timeshare.slices import TimeSlices, WholeTime, join_cores
from axon.errors import AxonError
from axon.runtime.json_lines import write_json_lines

logger = logging.getLogger(__name__)

ENGINE, SPARE = "axon-engine", "axon-spare"
"""The process's name as an engine, and before it as a spare; at most 15 characters."""
ENCODER_WEIGHT = 0.5
"""An embedding model's share of the cores against a chat model's, unless the settings say otherwise: nobody watches its
answers come word by word."""
_RECEIVE_BYTES = 1 << 20
_IDLE_CHECK_S = 1.0
_RECORDING_CHECK_S = 0.05
"""Longest wait of an idle engine while a profile is recorded, which it has to send."""


class Steps(Protocol):
    """The engine as this process uses it."""

    @property
    def has_work(self) -> bool: ...
    @property
    def wait_s(self) -> float:
        """Seconds for which the next step may be put off for more work; 0 for a step that is due."""

    @property
    def rest_s(self) -> float | None:
        """Seconds after which an idle engine has something to look after; None for nothing."""

    def ready(self) -> Ready: ...
    def add(self, add: Add) -> None: ...
    def abort(self, ids: list[str]) -> None: ...
    def erase(self, sessions: list[str]) -> None: ...
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


class _Ahead(NamedTuple):
    """What a spare process has read ahead of the model that a ``Warm`` message named."""

    model_dir: str = ""
    vocabulary: Vocabulary | None = None


_NOTHING = _Ahead()


def start_engine(start: Start, ahead: _Ahead = _NOTHING, between: Callable[[], None] = lambda: None) -> Steps:
    """Builds the engine that ``start`` asks for; ``between`` is called where a long step can be interrupted."""
    if start.config.kind == "echo":
        return _echo(start.config)
    if start.config.kind == "vllm":
        return _vllm(start)
    from axon.engine.load.vector_model import gives_vectors

    if gives_vectors(model_dir := Path(start.model_dir)):
        return _vectors(start.config, model_dir, between)
    from axon.engine.engine import Engine

    vocabulary = ahead.vocabulary if ahead.model_dir == start.model_dir else None
    return Engine(start.config, model_dir, vocabulary=vocabulary)


def _vllm(start: Start) -> Steps:
    from axon.engine.vllm.engine import VllmEngine
    from axon.engine.vllm.opening import open_vllm

    return VllmEngine(start.config, open_vllm(start.config, Path(start.model_dir)))


def _vectors(config: EngineConfig, model_dir: Path, between: Callable[[], None]) -> Steps:
    from axon.engine.backend import choose_device
    from axon.engine.encoder.engine import EncoderEngine
    from axon.engine.load.encoder import is_encoder

    config = for_device(config, choose_device(config))
    if is_encoder(model_dir):
        from axon.engine.encoder.choice import open_encoder
        from axon.engine.encoder.head import with_head

        return EncoderEngine(config, with_head(open_encoder(config, model_dir, between), model_dir))
    from axon.engine.encoder.decoder import PooledDecoderEncoder

    return EncoderEngine(config, PooledDecoderEncoder(config, model_dir))


def slices_of(start: Start) -> TimeSlices | WholeTime:
    """The slices that an engine takes on its cores; one that computes elsewhere, or nothing, needs none."""
    config = start.config
    if config.kind != "axon" or not config.share_cores:
        return WholeTime()
    from axon.engine.backend import choose_device
    from axon.engine.load.vector_model import gives_vectors

    if choose_device(config) != "cpu":
        return WholeTime()
    return join_cores(config.core_weight or (ENCODER_WEIGHT if gives_vectors(Path(start.model_dir)) else 1.0))


def _step(engine: Steps, slices: TimeSlices | WholeTime) -> StepOutput:
    """One step, in a time slice unless its batch still gathers."""
    if engine.wait_s > 0:
        return engine.step()
    away_s = slices.away_s
    with slices.slice():
        output = engine.step()
    if slices.away_s == away_s:
        return output
    step_s = max(0.0, output.counters.step_s - (slices.away_s - away_s))  # it waited meanwhile, and worked not
    return replace(output, counters=replace(output.counters, step_s=step_s))


def _echo(config: EngineConfig) -> Steps:
    if config.echo_dimensions or config.echo_classes:
        from axon.engine.encoder.echo import EchoEncoder
        from axon.engine.encoder.engine import EncoderEngine

        return EncoderEngine(for_device(config, "cpu"), EchoEncoder(config))
    from axon.engine.echo import EchoEngine

    return EchoEngine(config)


def serve(channel: Channel, note: CrashNote | None = None) -> int:
    """Runs an engine over the channel until the peer hangs up; returns the exit code."""
    try:
        start, rest, ahead = _receive_start(channel)
        try:
            slices = slices_of(start)
            engine = start_engine(start, ahead, slices.offer)
        except AxonError as error:  # a sentence for people: the place in the code would only hide it
            channel.send(Failed(error.message))
            return 1
        except Exception as error:
            traceback.print_exc()
            channel.send(Failed(f"{type(error).__name__}: {error}"))
            return 1
        if note is not None:
            engine.note_steps(note.write)
        recordings = Recordings()
        with closing(slices), closing(engine), closing(recordings):
            channel.send(engine.ready())
            _take(engine, recordings.take(rest))
            while True:
                if not engine.has_work:
                    slices.rest()
                messages = recordings.take(_receive_work(channel, engine, recordings))
                _take(engine, messages)
                if engine.has_work or messages:  # without work a step still reports the blocks that an abort freed
                    _make_step(channel, engine, slices)
                recordings.send_done(channel)
    except Hangup:
        return 0


def _make_step(channel: Channel, engine: Steps, slices: TimeSlices | WholeTime) -> None:
    """Computes one step and sends its output; the recording that is on, if any, notes its phases."""
    recording = timeline()
    if recording is None:
        channel.send(_step(engine, slices))
        return
    recording.begin_step()
    recording.enter("wait for cores")
    output = _step(engine, slices)
    recording.enter("emit")
    channel.send(output)
    recording.end_step(sequences=output.counters.num_running, tokens=output.counters.batch_tokens)


def warm_up(config: EngineConfig, model_dir: str = "") -> Vocabulary | None:
    """Imports what engines with this config need, and returns the vocabulary of the model, if one is named; an error is
    logged and left to ``start_engine``, which reports it."""
    from axon.engine import backend
    from axon.engine.engine import vocabulary_of
    from axon.engine.load.vector_model import gives_vectors

    try:
        backend.warm_up(config)
        return vocabulary_of(Path(model_dir)) if model_dir and not gives_vectors(Path(model_dir)) else None
    except Exception as error:
        logger.warning(
            "the spare engine process could not prepare itself: %s",
            error,
            extra={"axon_event": "spare_engine.not_prepared"},
        )
        return None


def _receive_start(channel: Channel) -> tuple[Start, list[Message], _Ahead]:
    messages, ahead = _receive_some(channel), _NOTHING
    if isinstance(first := messages[0], Warm):
        _name_process(SPARE)
        ahead = _Ahead(first.model_dir, warm_up(first.config, first.model_dir))
        messages = messages[1:] or _receive_some(channel)
    start, *rest = messages
    if not isinstance(start, Start):
        raise TypeError(f"the first frame must be Start, not {type(start).__name__}")
    _name_process(ENGINE)
    return start, rest, ahead


def _name_process(name: str) -> None:
    """Sets the process's name, which ``top`` and ``ps -o comm`` show; only Linux has one."""
    with suppress(OSError):
        Path("/proc/self/comm").write_text(name)


def _receive_some(channel: Channel) -> list[Message]:
    while not (messages := channel.receive(None)):
        pass
    return messages


def _take(engine: Steps, messages: Sequence[object]) -> None:
    for message in messages:
        match message:
            case Add():
                engine.add(message)
            case Abort():
                engine.abort(message.ids)
            case Erase():
                engine.erase(message.sessions)
            case _:
                raise TypeError(f"an engine does not take {type(message).__name__}")


def _receive_work(channel: Channel, engine: Steps, recordings: Recordings) -> list[Message]:
    """Waits only if the engine is idle and has started whole.

    After an idle second it proves its bookkeeping, and prepares for grammars, which would hold up its streams later.
    """
    if engine.has_work or engine.tend():
        return channel.receive(engine.wait_s)
    if recordings.is_on:
        return channel.receive(_RECORDING_CHECK_S)
    messages = channel.receive(_IDLE_CHECK_S)
    if messages:
        return messages
    engine.check()
    engine.prepare()
    return channel.receive(engine.rest_s)


def main() -> int:
    """Serves the socket whose descriptor the parent passed."""
    parser = argparse.ArgumentParser(prog="axon.engine.process")
    parser.add_argument("--fd", type=int, required=True, help="descriptor of a connected stream socket")
    parser.add_argument("--note", type=int, help="descriptor of the crash note")
    parser.add_argument("--json-logs", action="store_true", help="write log lines as JSON")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-c belongs to the parent, which closes the socket
    options = parser.parse_args()
    if options.json_logs:
        write_json_lines("axon-engine")
    else:
        logging.basicConfig(format="axon: %(message)s")  # as the parent says what takes its time
    with socket.socket(fileno=options.fd) as sock:
        return serve(Channel(sock), None if options.note is None else CrashNote(options.note))


if __name__ == "__main__":
    sys.exit(main())
