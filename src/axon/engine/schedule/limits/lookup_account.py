"""The account that bounds what looked-up drafts cost where they do not help. Reads no clock.

Every step pays in a small share of its time, every accepted draft the time of the token that it saved, and what drafts
added to a step is paid out. Where nothing is left, no drafts are looked up until the steps have paid in enough for one
more try. So drafts that cost more time than they save, for whatever reason, cost no more than that share, beside what
the account begins with and what was saved before, up to a limit.
"""

ALLOWANCE = 0.01
"""Share of the time of all steps that drafts may cost if they save nothing."""
_FIRST_STEPS, _MOST_STEPS = 8.0, 64.0
"""What the account begins with, and its limit, in times of a step."""


class LookupAccount:
    """What lookups may still cost, in seconds."""

    def __init__(self) -> None:
        self.balance_s: float | None = None
        """None before the first step is measured."""

    def can_pay(self, cost_s: float = 0.0) -> bool:
        """Whether there is more than this."""
        return self.balance_s is None or self.balance_s > cost_s

    def enter(self, *, step_s: float, plain_s: float, saved_s: float) -> None:
        """Takes in a step. ``plain_s`` is what it takes without drafts, ``saved_s`` what its drafts saved less what
        they cost."""
        balance_s = _FIRST_STEPS * plain_s if self.balance_s is None else self.balance_s
        self.balance_s = min(balance_s + ALLOWANCE * step_s + saved_s, _MOST_STEPS * plain_s)
