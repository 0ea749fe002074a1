"""The waterfall of a trace and the tables of the slowest, as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.console.operations.trace_view import bar_text, slowest_lines, step_rows, trace_lines, turn_rows
from axon.domain.tracing.drawn import drawn
from axon.domain.tracing.slowest import slowest
from tests.domain.tracing.turns import CREATED, restarted, turn_of

TURN = turn_of([(0.5, 0.0, 1.0, 2.0), (3.0, 0.0, 1.0, 2.0)], loaded_s=0.0)


@given(st.floats(0, 1), st.floats(0, 1), st.integers(10, 80))
def test_a_bar_fits_and_is_seen(start: float, length: float, width: int) -> None:
    text = bar_text(start, min(length, 1 - start), width)
    assert len(text) == width
    assert text.strip()


def test_a_bar_is_where_its_time_was() -> None:
    assert bar_text(0.0, 1.0, 10) == "█" * 10
    assert bar_text(0.5, 0.25, 8) == "    ██  "
    assert bar_text(0.0, 0.0, 4) == "▏   "


def test_a_trace_is_a_line_for_each_span() -> None:
    lines = trace_lines(drawn(TURN), 100)
    assert "2 attempts" in lines[0]
    assert "request req_1" in lines[1]
    assert [line.split()[0] for line in lines[3:]][:5] == [
        "chat",
        "admission",
        "session.load",
        "job.queue_wait",
        "attempt",
    ]
    assert lines[-4].endswith("worker-1 (lost)")
    assert "attempt_lost" in lines[-8]
    assert max(map(len, lines)) <= 120


def test_a_restart_of_the_server_is_told() -> None:
    lines = trace_lines(drawn(restarted(TURN, 3.0)), 100)
    assert "2 attempts, the server was restarted once" in lines[0]
    [restart] = [line for line in lines if line.startswith("  server.restart")]
    assert restart.endswith("3.00 s")
    assert [line for line in lines if line.endswith("worker-1 (restart)")]


@pytest.mark.parametrize("width", [1, 40, 400])
def test_every_width_is_drawn(width: int) -> None:
    assert len(trace_lines(drawn(TURN), width)) == 3 + 12


def test_the_slowest_are_told_in_tables() -> None:
    found = slowest([TURN] * 3, most=2, now=CREATED + 60)
    [line] = slowest_lines(found)
    assert line.startswith("3 turns of the last")
    assert step_rows(found)[0][0] == "engine.decode"
    assert [row[0] for row in turn_rows(found)] == [TURN.id] * 2
    assert slowest_lines(slowest([], most=2, now=1.0)) == ["No turn has ended in this time."]
