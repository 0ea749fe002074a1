"""Embedded accounts: the whole book-keeping in Python. The Lua script on Redis does the same, line by line."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from axon.adapters.live.memory.expiring import Expiring
from axon.domain.tenants.account import (
    IDLE_S,
    LEARNING,
    MINUTE_S,
    SETTLED_S,
    Beat,
    Bound,
    Bounds,
    Entry,
    Round,
    Settlement,
    Standing,
)
from axon.runtime.clock import Clock


@dataclass(slots=True)
class _Job:
    reserved: float = 0.0
    used: float = 0.0
    waits: bool = True
    until: float | None = None
    """Monotonic time at which it expires; None when it has expired."""

    @property
    def left(self) -> float:
        return max(0.0, self.reserved - self.used)


@dataclass(slots=True)
class _Level:
    """A token bucket; a new one is full."""

    amount: float = math.inf
    at: float = 0.0

    def refill(self, per_minute: float, now: float) -> None:
        """Refills the bucket for the time since the last call; without a rate it stays as it is."""
        if per_minute:
            self.amount = min(per_minute, self.amount + max(0.0, now - self.at) * per_minute / MINUTE_S)
            self.at = now


@dataclass(slots=True)
class _Account:
    requests: _Level = field(default_factory=_Level)
    tokens: _Level = field(default_factory=_Level)
    jobs: dict[str, _Job] = field(default_factory=dict)
    settled: dict[str, float] = field(default_factory=dict)
    """Settled jobs with the time until which they are remembered, the earliest first."""
    budgets: dict[str, tuple[int, float]] = field(default_factory=dict)
    """By the budget's name: the window, and the tokens used in it."""
    mean_output: float | None = None
    mean_s: float | None = None
    num_inside: int = 0
    """Number of jobs that have not expired. This and the next three follow every change of a job, because each call
    asks for them: to add them up would cost every request as much as there are jobs."""
    num_waiting: int = 0
    work: float = 0.0
    waiting_work: float = 0.0
    first_until: float = math.inf
    """No job expires before this monotonic time."""

    def admit(self, entry: Entry, bounds: Bounds, now: float) -> Standing:
        self._begin(bounds, now)
        job = self.jobs.get(entry.job_id)
        is_in = job is not None and job.until is not None
        capacity = bounds.tokens_per_minute
        tokens = min(entry.tokens, capacity) if capacity else entry.tokens
        more = max(0.0, tokens - (job.reserved if job else 0.0))
        standing = self._standing(bounds)
        refused = None if standing.unseeded else self._refusal(standing, entry, bounds, more)
        if standing.unseeded or refused:
            return self._standing(bounds, refused)
        if job is None:
            job = self.jobs[entry.job_id] = _Job()
        if not is_in:
            self.requests.amount -= 1 if bounds.requests_per_minute else 0
        self.settled.pop(entry.job_id, None)
        self.tokens.amount -= more if capacity else 0
        self._sum(job, -1)
        job.reserved += more
        self._keep_until(job, now + entry.ttl_s)
        return self._standing(bounds)

    def beat(self, beats: Sequence[Beat], bounds: Bounds, ttl_s: float, now: float) -> Standing:
        self._begin(bounds, now)
        reserved: dict[str, float] = {}
        for beat in beats:
            if beat.again:
                self.settled.pop(beat.job_id, None)
            if beat.job_id not in self.settled:
                reserved[beat.job_id] = self._beat(beat, bounds, now + ttl_s)
        return self._standing(bounds, reserved=reserved)

    def settle(self, end: Settlement, now: float) -> None:
        bounds = end.bounds
        self._begin(bounds, now)
        self.settled.pop(end.job_id, None)
        self.settled[end.job_id] = now + SETTLED_S
        job = self.jobs.pop(end.job_id, None)
        if job is None:
            return
        self._sum(job, -1)
        if bounds.tokens_per_minute:
            self.tokens.amount = min(bounds.tokens_per_minute, self.tokens.amount + job.reserved - end.used)
        if end.uncounted and bounds.requests_per_minute:
            self.requests.amount = min(bounds.requests_per_minute, self.requests.amount + 1)
        self._spend(end.used - job.used)
        if end.output is not None:
            self.mean_output = _learned(self.mean_output, end.output)
            self.mean_s = _learned(self.mean_s, end.took_s)

    def keep_s(self, bounds: Bounds) -> float:
        """Seconds that the account must be kept: until its buckets are full, and a margin."""
        per_minute = bounds.tokens_per_minute
        debt_s = (per_minute - self.tokens.amount) / per_minute * MINUTE_S if per_minute else 0.0
        return IDLE_S + max(0.0, debt_s)

    def _begin(self, bounds: Bounds, now: float) -> None:
        """Advances the account to now: refills buckets, expires jobs, starts new budget windows."""
        self.requests.refill(bounds.requests_per_minute, now)
        self.tokens.refill(bounds.tokens_per_minute, now)
        while self.settled and self.settled[first := next(iter(self.settled))] <= now:
            del self.settled[first]
        if self.first_until <= now:
            self._lapse_all(bounds, now)
        # What rounding has left of the sums does not stay.
        self.work = self.work if self.num_inside else 0.0
        self.waiting_work = self.waiting_work if self.num_waiting else 0.0
        for budget in bounds.budgets:
            window, _ = self.budgets.get(budget.name, (-1, 0.0))
            if budget.window > window and budget.seed is not None:
                # The store has ended turns only; running ones are known here. Expired jobs are not counted.
                self.jobs = {job_id: job for job_id, job in self.jobs.items() if job.until is not None}
                self.budgets[budget.name] = budget.window, budget.seed + sum(job.used for job in self.jobs.values())

    def _sum(self, job: _Job, sign: int) -> None:
        """Counts a job that has not expired in the sums: sign -1 before each change of it, 1 after the change."""
        if job.until is None:
            return
        left = sign * job.left
        self.num_inside += sign
        self.work += left
        if job.waits:
            self.num_waiting += sign
            self.waiting_work += left

    def _keep_until(self, job: _Job, until: float) -> None:
        """Ends a change of a job: it is in now, and expires at this time."""
        job.until = until
        self.first_until = min(self.first_until, until)
        self._sum(job, 1)

    def _lapse_all(self, bounds: Bounds, now: float) -> None:
        for job_id in [each for each, job in self.jobs.items() if job.until is not None and job.until <= now]:
            self._lapse(job_id, self.jobs[job_id], bounds)
        self.first_until = min((job.until for job in self.jobs.values() if job.until is not None), default=math.inf)

    def _lapse(self, job_id: str, job: _Job, bounds: Bounds) -> None:
        """Expires a job; remembers what it used in case it comes back, unless it never ran."""
        self._sum(job, -1)
        if bounds.tokens_per_minute:
            self.tokens.amount = min(bounds.tokens_per_minute, self.tokens.amount + job.left)
        job.reserved, job.until = job.used, None
        if not job.used:
            del self.jobs[job_id]

    def _refusal(self, standing: Standing, entry: Entry, bounds: Bounds, more: float) -> Bound | None:
        job = self.jobs.get(entry.job_id)
        is_in = job is not None and job.until is not None
        held = standing.work - (job.left if job and is_in else 0.0)  # tokens set aside for the account's other jobs
        if standing.lacking(bounds.budgets, entry.least):
            return Bound.BUDGET
        if standing.lacking(bounds.budgets, entry.least, held=held):
            return Bound.BUDGET_HELD
        if not is_in:
            if bounds.requests_per_minute and standing.requests < 1:
                return Bound.REQUESTS
            if bounds.jobs and standing.jobs >= bounds.jobs:
                return Bound.JOBS
            if bounds.waiting and standing.waiting >= bounds.waiting:
                return Bound.WAITING
            if bounds.work and standing.work >= bounds.work:
                return Bound.WORK
            if bounds.waiting_work and standing.waiting_work >= bounds.waiting_work:
                return Bound.WAITING_WORK
        capacity = bounds.tokens_per_minute
        reserved = job.reserved if job else 0.0
        if capacity and standing.tokens < max(more, min(entry.least, capacity) - reserved):
            return Bound.TOKENS
        return None

    def _beat(self, beat: Beat, bounds: Bounds, until: float) -> float:
        capacity = bounds.tokens_per_minute
        job = self.jobs.get(beat.job_id)
        if job is None:
            # A lost job: its earlier use was charged already, the tokens that it has left are set aside again.
            reserved = min(beat.reserved, capacity) if capacity else beat.reserved
            job = self.jobs[beat.job_id] = _Job(reserved=max(reserved, beat.used))
            self.tokens.amount -= max(0.0, reserved - beat.used) if capacity else 0
        self._sum(job, -1)
        used = max(job.used, beat.used)
        self._spend(used - job.used)
        job.used = used
        if used > job.reserved:
            self.tokens.amount -= used - job.reserved if capacity else 0
            job.reserved = used
        more = math.floor(min(beat.more, max(0.0, self.tokens.amount))) if capacity else beat.more
        self.tokens.amount -= more if capacity else 0
        job.reserved += more
        job.waits = job.waits if beat.waits is None else beat.waits
        self._keep_until(job, until)
        return job.reserved

    def _spend(self, tokens: float) -> None:
        self.budgets = {name: (window, spent + tokens) for name, (window, spent) in self.budgets.items()}

    def _standing(
        self, bounds: Bounds, refused: Bound | None = None, reserved: dict[str, float] | None = None
    ) -> Standing:
        return Standing(
            refused=refused,
            requests=self.requests.amount,
            tokens=self.tokens.amount,
            jobs=self.num_inside,
            waiting=self.num_waiting,
            work=self.work,
            waiting_work=self.waiting_work,
            mean_output=self.mean_output,
            mean_s=self.mean_s,
            spent={name: spent for name, (_, spent) in self.budgets.items()},
            unseeded=tuple(
                budget.name for budget in bounds.budgets if self.budgets.get(budget.name, (-1, 0))[0] < budget.window
            ),
            reserved=reserved or {},
        )


class MemoryAccounts:
    """Above ``max_accounts`` the least recently used are dropped."""

    def __init__(self, clock: Clock, *, max_accounts: int = 100_000) -> None:
        self._clock = clock
        self._accounts: Expiring[str, _Account] = Expiring(clock, max_entries=max_accounts)

    async def admit(self, account: str, entry: Entry, bounds: Bounds) -> Standing:
        found = self._find(account)
        standing = found.admit(entry, bounds, self._clock.monotonic())
        self._keep(account, found, bounds)
        return standing

    async def beat(self, rounds: Sequence[Round]) -> Sequence[Standing]:
        answers = []
        for each in rounds:
            found = self._find(each.account)
            answers.append(found.beat(each.beats, each.bounds, each.ttl_s, self._clock.monotonic()))
            self._keep(each.account, found, each.bounds)
        return answers

    async def settle(self, ends: Sequence[Settlement]) -> None:
        for end in ends:
            found = self._find(end.account)
            found.settle(end, self._clock.monotonic())
            self._keep(end.account, found, end.bounds)

    def lose_everything(self) -> None:
        """Simulates a restart of the service, for tests."""
        self._accounts.clear()

    def _find(self, account: str) -> _Account:
        return self._accounts.get(account) or _Account()

    def _keep(self, account: str, found: _Account, bounds: Bounds) -> None:
        self._accounts.put(account, found, found.keep_s(bounds))


def _learned(mean: float | None, newest: float) -> float:
    return newest if mean is None else mean + LEARNING * (newest - mean)
