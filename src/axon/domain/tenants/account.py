"""Accounts: how much of its limits a tenant, or a whole fleet, has in use. Values only: `live` keeps the accounts.

    admit ──► beat … beat ──► settle        each by the job's id; twice is harmless

An admitted job has tokens *set aside* (reserved) for it and tokens that it has *used*; the difference is *left*. Each
heartbeat (*beat*) extends the job's time to live. When the beats stop the entry expires, and the tokens that were left
return to the account.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

MINUTE_S = 60.0
IDLE_S = 3600.0
"""Seconds after which an unused account without debt is dropped."""
SETTLED_S = 60.0
"""Seconds that a settled job is remembered, so that late beats do not bring it back."""
LEARNING = 0.1
"""Weight of the newest job in the exponentially weighted means."""


class Bound(StrEnum):
    """The limit that refused a job, in the order in which limits are checked."""

    BUDGET = "budget"
    BUDGET_HELD = "budget_held"
    """The rest of the budget is set aside for other jobs of the same account."""
    REQUESTS = "requests"
    JOBS = "jobs"
    WAITING = "waiting"
    WORK = "work"
    """Tokens left (set aside and not used) over all jobs of the account."""
    WAITING_WORK = "waiting_work"
    """Tokens left over the jobs that wait for a worker."""
    TOKENS = "tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Tokens that may be used in a window of time."""

    name: str
    """``day`` or ``month``."""
    window: int
    """Number of the day or month; a later one has a higher number."""
    limit: int
    seed: int | None = None
    """Tokens that ended turns have used in the window, read from the store; None where it was not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits of an account; 0 means unlimited. Rates are token buckets that hold one minute's worth and refill
    evenly."""

    requests_per_minute: float = 0.0
    tokens_per_minute: float = 0.0
    jobs: int = 0
    waiting: int = 0
    work: float = 0.0
    waiting_work: float = 0.0
    budgets: tuple[Budget, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A request to admit a job; for a job that is admitted already, a request to set aside more tokens."""

    job_id: str
    tokens: float = 0
    """Tokens to set aside in all, at most the size of the bucket."""
    least: float = 0
    """Tokens that must be available: the bucket must hold this many or be full, and each budget must have this many
    left. They are checked, not taken."""
    ttl_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """Heartbeat of one job: it is still in use, with what it has used so far."""

    job_id: str
    reserved: float = 0
    """Tokens set aside by its ticket; an account that has lost the job restores it from this."""
    used: float = 0
    """Tokens used so far in all."""
    more: float = 0
    """Further tokens to set aside, as far as they are available."""
    waits: bool | None = None
    """Whether the job waits for a worker; None leaves the known state. A job that the account does not know waits."""
    again: bool = False
    """Whether the beat counts although the job was settled: it is accepted once more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """All beats for one account, sent together."""

    account: str
    beats: tuple[Beat, ...]
    bounds: Bounds
    ttl_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The end of a job: unused tokens return to the account, tokens beyond the ticket are charged. It takes effect
    once."""

    account: str
    job_id: str
    used: float
    output: float | None = None
    """Tokens of the answer, for the account's running mean; None for a job that never ran."""
    took_s: float = 0.0
    bounds: Bounds
    uncounted: bool = False
    """Whether the job was not accepted after all: then its request is not counted either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """State of an account after a call."""

    refused: Bound | None = None
    requests: float = 0.0
    """Requests left in the bucket."""
    tokens: float = 0.0
    """Tokens left in the bucket; a negative number is a debt that the refill pays."""
    jobs: int = 0
    waiting: int = 0
    work: float = 0.0
    waiting_work: float = 0.0
    mean_output: float | None = None
    """Running mean of tokens per answer; None before the first job has ended."""
    mean_s: float | None = None
    """Running mean of seconds from a job's start to its end."""
    spent: Mapping[str, float] = field(default_factory=dict)
    """Tokens used of each budget, by the budget's name."""
    unseeded: tuple[str, ...] = ()
    """Budgets whose earlier use the account does not know: the caller reads it and calls again with ``seed``."""
    reserved: Mapping[str, float] = field(default_factory=dict)
    """Tokens set aside in all, by job id, for the jobs of a round."""

    def over(self, budgets: tuple[Budget, ...]) -> Budget | None:
        """Returns the first of these budgets that is used up."""
        return self.lacking(budgets, 0)

    def lacking(self, budgets: tuple[Budget, ...], tokens: float, *, held: float = 0) -> Budget | None:
        """Returns the first of these budgets with fewer than ``tokens`` left besides ``held``; one that is used up
        counts."""
        return next((each for each in budgets if (left := self.left(each)) <= 0 or left - held < tokens), None)

    def left(self, budget: Budget) -> float:
        """Tokens of the budget that are not used."""
        return budget.limit - self.spent.get(budget.name, 0)
