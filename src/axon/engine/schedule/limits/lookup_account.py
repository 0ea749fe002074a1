"""A token bucket in seconds that bounds what looked-up drafts cost where they do not help. Reads no clock.

Each step adds 1% of its time and each accepted draft the time of one token; the time that drafts added to a step is
taken out. While the bucket is empty nothing is looked up. The bound is as good as the estimate of a step's time without
drafts: where other processes slow some steps down, it may be exceeded.
"""

ALLOWANCE = 0.01
"""Share of the time of all steps that drafts may cost if they save nothing."""
_FIRST_STEPS, _MOST_STEPS = 8.0, 64.0
"""What the account begins with, and its limit, in times of a step."""


class LookupAccount:
    """Seconds that lookups may still cost."""

    def __init__(self) -> None:
        self.balance_s: float | None = None
        """None before the first step is measured."""

    def can_pay(self, cost_s: float = 0.0) -> bool:
        """Whether more than ``cost_s`` seconds are left; True before the first step is measured."""
        return self.balance_s is None or self.balance_s > cost_s

    def enter(self, *, step_s: float, plain_s: float, saved_s: float) -> None:
        """Takes in a step. ``plain_s`` is what it takes without drafts, ``saved_s`` what its drafts saved less what
        they cost."""
        balance_s = _FIRST_STEPS * plain_s if self.balance_s is None else self.balance_s
        self.balance_s = min(balance_s + ALLOWANCE * step_s + saved_s, _MOST_STEPS * plain_s)
