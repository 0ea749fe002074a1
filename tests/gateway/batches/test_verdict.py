"""Which answers end a line, and which are asked again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.gateway.batches.verdict import Answer, Verdict, retry_after_s, verdict_of, wait_s


@pytest.mark.parametrize(
    ("status", "code", "attempt", "verdict"),
    [
        (200, "", 1, Verdict.DONE),
        (400, "context_length_exceeded", 1, Verdict.FAILED),
        (404, "model_not_found", 1, Verdict.FAILED),
        (429, "rate_limit_exceeded", 99, Verdict.WAIT),
        (429, "insufficient_quota", 1, Verdict.WAIT),
        (429, "storage_quota_exceeded", 1, Verdict.FAILED),
        (503, "overloaded", 99, Verdict.WAIT),
        (409, "conversation_locked", 99, Verdict.WAIT),
        (409, "idempotency_key_reused", 1, Verdict.FAILED),
        (500, "worker_crash", 1, Verdict.RETRY),
        (500, "worker_crash", 3, Verdict.FAILED),
        (504, "deadline_exceeded", 2, Verdict.RETRY),
        (410, "stream_expired", 1, Verdict.RETRY),
    ],
)
def test_what_an_answer_means(status: int, code: str, attempt: int, verdict: Verdict) -> None:
    assert verdict_of(Answer(status=status, body=b"", code=code), attempt, 3) is verdict


@given(st.none() | st.floats(), st.integers(0, 10_000))
def test_a_wait_is_bounded(asked: float | None, num_waits: int) -> None:
    answer = Answer(status=503, body=b"", retry_after_s=asked)
    assert 0.05 <= wait_s(answer, num_waits) <= 30.0


def test_the_headers_say_how_long_to_wait() -> None:
    assert retry_after_s({b"retry-after-ms": b"250"}) == 0.25
    assert retry_after_s({}) is None
    assert retry_after_s({b"retry-after-ms": b"soon"}) is None
