"""What has been taken of somebody's limits: a tenant's, or a whole fleet's. Values only: `live` keeps the accounts.

    admit ──► beat … beat ──► settle        each by the job's id; twice is harmless

A job that is in has tokens *set aside* for it and tokens that it has *used*; what it has not used yet is *left*. It is
in for as long as somebody beats for it: one that nobody beats for lapses, and what was left comes back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

MINUTE_S = 60.0


class Bound(StrEnum):
    """What an account is refused for, in the order they are looked at."""

    BUDGET = "budget"
    BUDGET_HELD = "budget_held"
    """What is left of it is set aside for others of its jobs."""
    REQUESTS = "requests"
    JOBS = "jobs"
    WAITING = "waiting"
    WORK = "work"
    """Tokens that are left of all its jobs."""
    WAITING_WORK = "waiting_work"
    """Tokens that are left of those that wait."""
    TOKENS = "tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Tokens that may be used in a window of time."""

    name: str
    """``day`` or ``month``."""
    window: int
    """Which day or month; a later one has a higher number."""
    limit: int
    seed: int | None = None
    """What ended turns have used in it, from the durable records; None where nobody has looked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much an account may hold; 0 is no bound. Rates are buckets of a minute's size, refilled evenly."""

    requests_per_minute: float = 0.0
    tokens_per_minute: float = 0.0
    jobs: int = 0
    waiting: int = 0
    work: float = 0.0
    waiting_work: float = 0.0
    budgets: tuple[Budget, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A job that asks to be let in; one that is in already may set aside more."""

    job_id: str
    tokens: float = 0
    """To be set aside in all, as far as the bucket is deep."""
    least: float = 0
    """The bucket must hold so many, or be full, though they are not taken yet; budgets must have so many left."""
    ttl_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """A job that goes on."""

    job_id: str
    reserved: float = 0
    """What its ticket sets aside, for an account that does not know it."""
    used: float = 0
    """So far, in all."""
    more: float = 0
    """Asks for so many more to be set aside, as far as they are there."""
    waits: bool | None = None
    """Whether it waits for a worker; None leaves it as it is known, and one that is not known waits."""
    again: bool = False
    """It counts even if it was settled: it is accepted once more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The beats for one account."""

    account: str
    beats: tuple[Beat, ...]
    bounds: Bounds
    ttl_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """A job that has ended: what it did not use comes back, what it used beyond its ticket is charged; once."""

    account: str
    job_id: str
    used: float
    output: float | None = None
    """Tokens of its answer, to learn from; None of a job that never ran."""
    took_s: float = 0.0
    bounds: Bounds
    uncounted: bool = False
    """It was never let in after all: its request is not counted either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How an account stands after what was asked of it."""

    refused: Bound | None = None
    requests: float = 0.0
    """Left in the bucket."""
    tokens: float = 0.0
    """Left in the bucket; less than none is a debt, to be paid by the refill."""
    jobs: int = 0
    waiting: int = 0
    work: float = 0.0
    waiting_work: float = 0.0
    mean_output: float | None = None
    """Tokens of an answer, as its last jobs had them; None before the first."""
    mean_s: float | None = None
    """From a job's beginning to its end."""
    spent: Mapping[str, float] = field(default_factory=dict)
    """Of its budgets, by their names."""
    unseeded: tuple[str, ...] = ()
    """Budgets of which it does not know what was used before; who does is to say so and ask again."""
    reserved: Mapping[str, float] = field(default_factory=dict)
    """What is set aside for the jobs of a round, in all."""

    def over(self, budgets: tuple[Budget, ...]) -> Budget | None:
        """The first of these budgets that is used up."""
        return self.lacking(budgets, 0)

    def lacking(self, budgets: tuple[Budget, ...], tokens: float, *, held: float = 0) -> Budget | None:
        """The first of these budgets that has not so many left beside what is held; one that is used up has none."""
        return next((each for each in budgets if (left := self.left(each)) <= 0 or left - held < tokens), None)

    def left(self, budget: Budget) -> float:
        """Tokens that nobody has used yet."""
        return budget.limit - self.spent.get(budget.name, 0)
