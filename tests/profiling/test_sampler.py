"""The sampler finds what computes, tells it from what waits, and knows its own cost."""

import os
import sys
import threading

from axon.profiling.sampler import NATIVE, record_cpu
from axon.profiling.weights import Weight, heaviest


class Busy:
    """Threads that compute and wait until the block ends."""

    def __init__(self) -> None:
        self._over, self._is_over = threading.Event(), False
        self._threads = [
            threading.Thread(target=each, name=name, daemon=True)
            for each, name in ((self.spin_known, "spinning"), (self.wait_known, "waiting"))
        ]

    def __enter__(self) -> "Busy":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._over.set()
        for thread in self._threads:
            thread.join()

    def spin_known(self) -> None:
        while not self._is_over:  # no function of Python is called: the stack is always this one
            sum(range(1000))

    def wait_known(self) -> None:
        self._over.wait()


def test_a_busy_function_is_found_and_a_waiting_one_takes_no_processor_time() -> None:
    interval = sys.getswitchinterval()
    with Busy():
        made = (record_cpu(seconds, threading.Event()) for seconds in (0.3, 3.0, 30.0))
        profile = next(each for each in made if each.rounds >= 10)  # a busy machine may let it look less often
    names = [profile.frames[stack.frames[0]] for stack in profile.stacks]
    by_thread = {name: [s for n, s in zip(names, profile.stacks, strict=True) if n == name] for name in names}
    spinning, waiting = by_thread["spinning"], by_thread["waiting"]
    assert sum(each.cpu_us for each in spinning) > 0
    assert sum(each.samples for each in waiting) > 0
    assert sum(each.cpu_us for each in spinning) > 10 * sum(each.cpu_us for each in waiting)
    assert "Busy.spin_known" in heaviest(profile, Weight.CPU, 1)[0][0]
    assert any("Busy.wait_known" in name for name in profile.frames)
    assert profile.cost_s > 0
    assert sys.getswitchinterval() == interval


def spin_for_long(number: int = 0) -> int:
    while number < 100_000_000:
        number += 1
    return number


def test_the_main_thread_of_a_forked_process_is_found_too() -> None:
    read_end, write_end = os.pipe()
    if (pid := os.fork()) == 0:

        def look() -> None:
            made = (record_cpu(seconds, threading.Event()) for seconds in (0.3, 3.0))
            profile = next(each for each in made if each.rounds >= 10)
            os.write(write_end, heaviest(profile, Weight.CPU, 1)[0][0].encode())
            os._exit(0)

        threading.Thread(target=look, daemon=True).start()
        spin_for_long()
        os._exit(1)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as file:
        told = file.read().decode()
    os.waitpid(pid, 0)
    assert "spin_for_long" in told


def test_it_ends_when_it_is_stopped_and_says_how_long_it_took() -> None:
    stop = threading.Event()
    stop.set()
    profile = record_cpu(60.0, stop)
    assert profile.seconds < 60.0


def test_the_sampler_itself_is_not_in_the_profile() -> None:
    profile = record_cpu(0.1, threading.Event())
    assert not [name for name in profile.frames if "record_cpu" in name]
    assert not [each for each in profile.stacks if profile.frames[each.frames[0]] == NATIVE and each.cpu_us <= 0]
