"""Which turns are exported although they were not sampled."""

import pytest

from axon.domain.billing.ledger import Ledger
from axon.domain.tracing.kept import rebuilt_reason

QUICK, SLOW = Ledger(attempts=1, queue_s=1.0), Ledger(attempts=1, queue_s=1.0, decode_s=9.0)


@pytest.mark.parametrize(
    ("terminal", "ledger", "slow_s", "reason"),
    [
        ("", SLOW, 5.0, ""),
        ("completed", QUICK, 5.0, ""),
        ("completed", None, 5.0, ""),
        ("cancelled", QUICK, 5.0, ""),
        ("completed", SLOW, 5.0, "slow"),
        ("completed", SLOW, 0.0, ""),
        ("failed", None, 5.0, "failed"),
        ("expired", SLOW, 5.0, "failed"),
        ("completed", Ledger(attempts=2), 5.0, "failed_over"),
    ],
)
def test_what_is_worth_a_look(terminal: str, ledger: Ledger | None, slow_s: float, reason: str) -> None:
    assert rebuilt_reason(terminal, ledger, slow_s=slow_s) == reason
