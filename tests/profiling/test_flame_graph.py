"""The flame graph is a whole SVG document whose widths are the times."""

import re
from dataclasses import replace
from xml.etree import ElementTree

from axon.profiling.flame_graph import flame_graph
from axon.profiling.profile import Stack
from axon.profiling.weights import Weight
from tests.profiling.builders import IDLE, RUN, SPIN, cpu_profile

_G = "{http://www.w3.org/2000/svg}g"


def drawn(svg: str) -> dict[str, float]:
    """Each frame's part of the whole width."""
    root = ElementTree.fromstring(svg)
    return {each.attrib["data-n"]: float(each.attrib["data-w"]) for each in root.iter(_G)}


def test_widths_are_parts_of_the_processor_time() -> None:
    found = drawn(flame_graph(cpu_profile()))
    assert found["all"] == 1.0
    assert abs(found[SPIN] - 3.0 / 3.5) < 1e-5
    assert found[RUN] == found["MainThread"] == 1.0
    assert IDLE not in found


def test_by_the_clock_waiting_is_seen() -> None:
    found = drawn(flame_graph(cpu_profile(), weight=Weight.WALL))
    assert found[IDLE] == 0.5
    assert found[SPIN] == 0.375


def test_names_are_escaped_and_nothing_is_fetched() -> None:
    nasty = '</script><script>alert("1")</script>&'
    svg = flame_graph(replace(cpu_profile(), frames=["MainThread", nasty, SPIN, "pool", IDLE]))
    assert nasty in drawn(svg)
    assert nasty not in svg
    assert set(re.findall(r"https?://[^\s\"'<]+", svg)) == {"http://www.w3.org/2000/svg"}


def test_a_process_that_did_nothing_has_a_drawing_too() -> None:
    assert drawn(flame_graph(replace(cpu_profile(), stacks=[]))) == {}


def test_the_drawing_is_bounded() -> None:
    frames = ["MainThread", *(f"f{number} (a.py:{number})" for number in range(5000))]
    stacks = [Stack((0, number + 1), 1, 1) for number in range(5000)]
    svg = flame_graph(replace(cpu_profile(), frames=frames, stacks=stacks))
    assert len(drawn(svg)) < 5000  # those narrower than half a pixel are left out
