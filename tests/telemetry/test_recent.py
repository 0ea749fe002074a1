"""The ring buffer of log lines."""

from hypothesis import given
from hypothesis import strategies as st

from axon.telemetry.events.event import LEVELS
from axon.telemetry.recent import MAX_LINE_CHARS, RecentLines


@given(lines=st.lists(st.tuples(st.sampled_from([*LEVELS, "critical"]), st.text(max_size=30))))
def test_it_holds_the_newest_lines_within_its_bounds(lines: list[tuple[str, str]]) -> None:
    recent = RecentLines(max_lines=10, max_chars=100)
    for level, text in lines:
        recent.add(level, text)
        recent.check()
    held = recent.last()
    assert held == [text for _, text in lines][len(lines) - len(held) :]
    assert len(held) <= 10
    assert sum(map(len, held)) <= 100
    dropped = lines[: len(lines) - len(held)]
    assert not dropped or len(held) == 10 or sum(map(len, held)) + len(dropped[-1][1]) > 100


def test_the_last_lines_of_at_least_a_level_come_in_their_order() -> None:
    recent = RecentLines()
    for number, level in enumerate(["info", "error", "warning", "debug", "critical"]):
        recent.add(level, str(number))
    assert recent.last(level="warning") == ["1", "2", "4"]
    assert recent.last(2, level="warning") == ["2", "4"]
    assert recent.last(0) == []


def test_a_line_that_is_too_long_is_not_held() -> None:
    recent = RecentLines()
    recent.add("error", "x" * (MAX_LINE_CHARS + 1))
    assert recent.last() == []
