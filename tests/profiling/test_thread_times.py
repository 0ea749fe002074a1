"""Processor time of threads, as Linux tells it."""

import os
import threading
import time

from axon.profiling.thread_times import ThreadTimes, name_of, parse_schedstat, parse_stat
from tests.journeys.server import wait_until


def test_both_files_of_the_system_are_read() -> None:
    assert parse_schedstat(b"2500000 142424 2\n") == 2500
    ticks = os.sysconf("SC_CLK_TCK")
    line = b"7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0\n"
    assert parse_stat(line) == 300 * 1_000_000 // ticks


def test_a_thread_that_computes_takes_time_and_its_file_is_closed() -> None:
    times, own = ThreadTimes(), threading.get_native_id()
    before = times.microseconds(own)
    assert before is not None
    ends = time.thread_time() + 0.05
    while time.thread_time() < ends:
        pass
    after = times.microseconds(own)
    assert after is not None
    assert after > before
    assert own in times.all()
    times.close()
    assert times.microseconds(own) is not None  # opened again
    times.close()


def test_a_thread_that_has_ended_has_no_time() -> None:
    times = ThreadTimes()
    thread = threading.Thread(target=lambda: times.microseconds(threading.get_native_id()))
    thread.start()
    thread.join()
    assert thread.native_id is not None
    native_id = thread.native_id
    wait_until(lambda: times.microseconds(native_id) is None, "the system has ended the thread")
    assert name_of(native_id) == "thread"
    times.close()
