"""Files for other programs: each is what its program reads."""

import json
from collections import Counter

from axon.profiling.formats import chrome_trace, folded, speedscope
from axon.profiling.weights import Weight
from tests.profiling.builders import IDLE, RUN, SPIN, cpu_profile, steps_profile


def test_folded_stacks_have_a_line_for_each_stack_that_ran() -> None:
    assert folded(cpu_profile()) == f"MainThread;{RUN} 500000\nMainThread;{RUN};{SPIN} 3000000\n"
    assert f"pool;{IDLE} 400" in folded(cpu_profile(), weight=Weight.WALL)


def test_speedscope_has_a_profile_for_each_thread_whose_weights_sum_up() -> None:
    file = json.loads(speedscope(cpu_profile()))
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    [main] = file["profiles"]
    assert (main["type"], main["name"], main["unit"]) == ("sampled", "MainThread", "microseconds")
    assert sum(main["weights"]) == main["endValue"] == 3_500_000
    names = [[file["shared"]["frames"][index]["name"] for index in sample] for sample in main["samples"]]
    assert names == [["MainThread", RUN, SPIN], ["MainThread", RUN]]


def test_a_trace_has_a_complete_event_for_each_step_phase_and_batch_of_the_device() -> None:
    file = json.loads(chrome_trace(steps_profile(3)))
    events = file["traceEvents"]
    assert {each["ph"] for each in events} == {"X", "M", "C"}
    for each in events:
        assert isinstance(each["pid"], int)
        assert isinstance(each["tid"], int)
        assert each["ts"] >= 0
        assert each["ph"] != "X" or each["dur"] >= 0
    names = Counter(each["name"] for each in events if each["ph"] == "X")
    assert names == {"step": 3, "schedule": 3, "forward": 3, "batch": 3}
    tracks = {each["args"]["name"] for each in events if each["name"] == "thread_name"}
    assert tracks == {"steps", "host", "device"}
    assert [each["args"]["tokens"] for each in events if each["ph"] == "C"] == [5, 6, 7]
    assert file["otherData"] == {"process": "worker-1/echo", "seconds": 1.5, "cut": False}
