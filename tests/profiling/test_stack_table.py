"""Stacks are added up by thread, and the table stays within its bounds."""

import sys
from types import FrameType

from axon.profiling.stack_table import CUT, OTHERS, StackTable


def nested(depth: int) -> FrameType:
    return sys._getframe() if depth == 0 else nested(depth - 1)


def names(table: StackTable) -> dict[tuple[str, ...], tuple[int, int]]:
    frames, stacks = table.result()
    return {tuple(frames[index] for index in each.frames): (each.cpu_us, each.samples) for each in stacks}


def test_the_same_stack_of_a_thread_is_one_entry_with_the_sums() -> None:
    table, frame = StackTable(), nested(2)
    table.add("main", frame, 10)
    table.add("main", frame, 5)
    table.add("other", frame, 1)
    found = names(table)
    assert sorted(found.values()) == [(1, 1), (15, 2)]
    [(stack, _)] = [each for each in found.items() if each[0][0] == "main"]
    assert [name.split(" ")[0] for name in stack[-3:]] == ["nested", "nested", "nested"]


def test_stacks_beyond_the_bound_are_counted_together_and_no_time_is_lost() -> None:
    table = StackTable(max_stacks=2)
    for depth in range(5):
        table.add("main", nested(depth), 10)
    found = names(table)
    assert len(found) == 3
    assert found["main", OTHERS] == (30, 3)
    assert table.missed == 3
    assert sum(cpu_us for cpu_us, _ in found.values()) == 50


def test_a_deep_stack_keeps_its_innermost_frames_and_says_so() -> None:
    table = StackTable(max_depth=4)
    table.add("main", nested(50), 1)
    [stack] = names(table)
    assert stack[:2] == ("main", CUT)
    assert len(stack) == 6
