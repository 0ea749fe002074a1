"""A ticket's text, and the windows of budgets."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axon.admission.ticket import Ticket, window_start, windows

numbers = st.integers(0, 2**40)


@settings(deadline=None)
@given(
    reserved=numbers,
    expected=numbers,
    per_minute=st.floats(0, 1e12),
    per_day=numbers,
    fleet=st.text("abc;/-", max_size=20),
)
def test_a_ticket_survives_its_travel_in_the_job(
    reserved: int, expected: int, per_minute: float, per_day: int, fleet: str
) -> None:
    ticket = Ticket(
        reserved=reserved,
        expected=expected,
        tokens_per_minute=per_minute,
        tokens_per_day=per_day,
        tokens_per_month=2 * per_day,
        fleet=fleet,
    )
    assert Ticket.parse(str(ticket)) == ticket


@pytest.mark.parametrize("text", ["", "key:400", "9;1;2"])
def test_a_ticket_of_another_version_is_nobodys_and_limits_nothing(text: str) -> None:
    assert Ticket.parse(text) == Ticket()


@pytest.mark.parametrize(("name", "window"), [("day", 20260301), ("month", 202603)])
def test_windows_are_of_utc(name: str, window: int) -> None:
    start = datetime(2026, 3, 1, tzinfo=UTC).timestamp()
    assert window_start(name, window) == start
    assert window in windows(start)
    assert window not in windows(start - 0.001)
