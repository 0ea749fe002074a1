"""One profile at a time, in a thread of its own, within the bounds."""

import threading
from collections.abc import Callable
from queue import SimpleQueue

import pytest

from axon.errors import AlreadyProfiled
from axon.profiling.profile import MAX_SECONDS, MIN_SECONDS, Kind, MemoryProfile, Profile
from axon.profiling.profiler import Profiler
from tests.profiling.builders import memory_profile

WAIT_S = 60.0


def waits(seconds: float, stop: threading.Event) -> Callable[[], Profile]:
    def finish() -> Profile:
        assert stop.wait(WAIT_S)
        return memory_profile()

    return finish


def is_on(profiler: Profiler) -> bool:
    return profiler.is_on


def test_a_second_one_is_refused_until_the_first_has_ended() -> None:
    profiler, done = Profiler({Kind.CPU: waits}), SimpleQueue[Profile | BaseException]()
    profiler.start(Kind.CPU, 5.0, done.put)
    assert is_on(profiler)
    with pytest.raises(AlreadyProfiled):
        profiler.start(Kind.CPU, 5.0, done.put)
    profiler.stop()
    assert done.get(timeout=WAIT_S) == memory_profile()
    assert not is_on(profiler)
    profiler.start(Kind.CPU, 5.0, done.put)
    profiler.stop()
    assert isinstance(done.get(timeout=WAIT_S), MemoryProfile)


@pytest.mark.parametrize(("asked", "taken"), [(0.0, MIN_SECONDS), (3.0, 3.0), (1e9, MAX_SECONDS)])
def test_the_seconds_are_bounded_whoever_asks(asked: float, taken: float) -> None:
    seen, done = list[float](), SimpleQueue[Profile | BaseException]()

    def begin(seconds: float, stop: threading.Event) -> Callable[[], Profile]:
        seen.append(seconds)
        return memory_profile

    Profiler({Kind.CPU: begin}).start(Kind.CPU, asked, done.put)
    done.get(timeout=WAIT_S)
    assert seen == [taken]


def test_an_error_is_told_and_leaves_the_profiler_free() -> None:
    def fails() -> Profile:
        raise OSError("no")

    profiler, done = Profiler({Kind.CPU: lambda seconds, stop: fails}), SimpleQueue[Profile | BaseException]()
    profiler.start(Kind.CPU, 1.0, done.put)
    assert isinstance(done.get(timeout=WAIT_S), OSError)
    assert not profiler.is_on


def test_a_kind_that_the_process_has_not_is_refused_and_leaves_it_free() -> None:
    profiler = Profiler()
    with pytest.raises(KeyError):
        profiler.start(Kind.STEPS, 1.0, lambda result: None)
    assert not profiler.is_on
