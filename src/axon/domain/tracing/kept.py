"""Whether the trace of a request is exported: it was sampled, or it turned out to be worth a look. Pure."""

from axon.domain.billing.ledger import Ledger
from axon.domain.turn import TurnState

_FAILED = frozenset({TurnState.FAILED, TurnState.EXPIRED})


def rebuilt_reason(terminal: str, ledger: Ledger | None, *, slow_s: float) -> str:
    """Why the spans of a turn that was not sampled are made after its end: ``failed``, ``failed_over`` or ``slow``;
    empty if they are not. ``slow_s`` of 0 means that no turn is slow."""
    if not terminal:
        return ""
    if terminal in _FAILED:
        return "failed"
    if ledger is None:
        return ""
    if ledger.attempts > 1:
        return "failed_over"
    return "slow" if 0 < slow_s <= ledger.whole_s else ""
