"""A span's length."""

from axon.domain.tracing.span import Span


def test_a_span_lasts_from_its_start_to_its_end() -> None:
    assert Span("claim", "t", "s", "", 2.0, 5.5).seconds == 3.5
