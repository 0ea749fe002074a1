"""Profiles of an engine's process: taken from its messages, recorded beside its steps, sent when they are done."""

from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import Protocol

from axon.engine.phases import begin_steps
from axon.engine.protocol.messages import Record, Recorded, StopRecord
from axon.errors import AxonError
from axon.profiling.packing import pack
from axon.profiling.profile import Kind, Profile
from axon.profiling.profiler import OF_ANY, Profiler


class Sender(Protocol):
    """Sends a finished profile to the worker."""

    def send(self, message: Recorded) -> None: ...


class Recordings:
    """Makes at most one recording at a time. Its result waits for the thread of the steps, which owns the socket."""

    def __init__(self) -> None:
        self._profiler = Profiler({**OF_ANY, Kind.STEPS: begin_steps})
        self._done: SimpleQueue[Recorded] = SimpleQueue()
        self._num_open = 0
        self._last: int | None = None
        """The number of the profile that was begun last."""

    @property
    def is_on(self) -> bool:
        """Whether a result is still to be sent."""
        return self._num_open > 0

    def take(self, messages: Sequence[object]) -> list[object]:
        """Begins what the messages ask for; returns the other ones."""
        for message in messages:
            if isinstance(message, Record):
                self._begin(message)
            elif isinstance(message, StopRecord) and message.id == self._last:
                self._profiler.stop()
        return [each for each in messages if not isinstance(each, Record | StopRecord)]

    def send_done(self, channel: Sender) -> None:
        """Sends what has been recorded meanwhile."""
        while self._num_open:
            try:
                recorded = self._done.get_nowait()
            except Empty:
                return
            self._num_open -= 1
            channel.send(recorded)

    def close(self) -> None:
        """Ends the recording that is on."""
        self._profiler.stop()

    def _begin(self, asked: Record) -> None:
        def done(result: Profile | BaseException) -> None:
            self._done.put(_recorded(asked.id, result))

        self._num_open += 1
        try:
            self._profiler.start(Kind(asked.kind), asked.seconds, done)
            self._last = asked.id
        except Exception as error:  # such as a thread that the system refuses: the engine goes on without a profile
            done(error)


def _recorded(number: int, result: Profile | BaseException) -> Recorded:
    try:
        if not isinstance(result, BaseException):
            return Recorded(number, packed=pack(result))
    except AxonError as error:
        result = error
    if isinstance(result, AxonError):
        return Recorded(number, problem=result.message, code=result.code)
    return Recorded(number, problem="The profile could not be recorded.", code="profile_failed")
