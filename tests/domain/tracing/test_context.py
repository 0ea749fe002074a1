"""Trace context: W3C's header read and written, the caller's decision honoured, ids that follow from what is known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.tracing.context import (
    TraceContext,
    attempt_span_id,
    is_sampled,
    read_context,
    step_span_id,
    turn_span_id,
)

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    ("header", "sampled"),
    [
        (f"00-{TRACE}-{PARENT}-01", True),
        (f"00-{TRACE}-{PARENT}-00", False),
        (f"00-{TRACE}-{PARENT}-03", True),
        (f"cc-{TRACE}-{PARENT}-01-what-a-later-version-adds", True),
    ],
)
def test_a_valid_header_is_read(header: str, sampled: bool) -> None:
    assert read_context(header) == TraceContext(TRACE, PARENT, sampled)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "nonsense",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{PARENT}-01-more",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}",
    ],
)
def test_an_invalid_header_is_none(header: str) -> None:
    assert read_context(header) is None


@given(st.text(max_size=80))
def test_no_text_breaks_the_reader(header: str) -> None:
    found = read_context(header)
    assert found is None or read_context(found.header) == found


@given(st.integers(1, 2**128 - 1), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_samples_what_a_smaller_one_does(number: int, one: float, other: float) -> None:
    trace_id = f"{number:032x}"
    if is_sampled(None, trace_id, min(one, other)):
        assert is_sampled(None, trace_id, max(one, other))
    assert is_sampled(None, trace_id, 1.0)
    assert not is_sampled(None, trace_id, 0.0)


@pytest.mark.parametrize("sampled", [True, False])
def test_the_caller_decides_for_its_own(sampled: bool) -> None:
    caller = TraceContext(TRACE, PARENT, sampled)
    assert is_sampled(caller, TRACE, 0.0 if sampled else 1.0) is sampled


def test_ids_differ_and_are_the_same_everywhere() -> None:
    ids = [
        turn_span_id("a"),
        turn_span_id("b"),
        attempt_span_id("a", 1),
        attempt_span_id("a", 2),
        step_span_id("a", "x"),
    ]
    assert len(set(ids)) == len(ids)
    assert all(len(each) == 16 for each in ids)
    assert turn_span_id("a") == turn_span_id("a")
