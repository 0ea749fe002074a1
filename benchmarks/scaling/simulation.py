"""One policy on one load, from start to end in virtual time. Deterministic: the same seed gives the same figures.

The reconciler is a seam: ``Pacer`` brings the replicas that are there to the number that is wanted, so many a second.
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise

from benchmarks.scaling.fleet import Fleet
from benchmarks.scaling.load import Cohort, Load
from benchmarks.scaling.policies import Scaler, Schedule
from benchmarks.scaling.tally import Since, Tally
from benchmarks.scaling.view import view_of

DRAIN_S = 2.0
"""Seconds that a replica takes to hand its sequences over: they are paid for."""
_LAST_S = 60.0
"""Requests of the last minute do not count: their first tokens may lie behind the end of the run."""
_NUM_POINTS = 400


@dataclass(slots=True)
class Pacer:
    """Replicas on their way: ordered and not ready yet."""

    per_s: float
    cold_start_s: float
    starting: list[float] = field(default_factory=list)
    """Times at which they are ready, rising."""
    drained_s: float = 0.0
    """Replica seconds of draining so far."""

    def step(self, fleet: Fleet, wanted: int) -> bool:
        """Starts and stops what the pace allows; whether more is to do."""
        most = max(1, round(self.per_s))
        while self.starting and self.starting[0] <= fleet.now + 1e-9:
            num = sum(at <= fleet.now + 1e-9 for at in self.starting)
            del self.starting[:num]
            fleet.resize(fleet.replicas + num)
        missing = wanted - fleet.replicas - len(self.starting)
        if missing > 0:
            self.starting += [fleet.now + self.cold_start_s] * min(most, missing)
        elif missing < 0:
            excess = min(most, -missing)
            waived = min(excess, len(self.starting))
            if waived:
                del self.starting[-waived:]
            if excess > waived:
                self.drained_s += DRAIN_S * (excess - waived)
                fleet.resize(fleet.replicas - (excess - waived))
        return wanted != fleet.replicas + len(self.starting)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Figures of one run."""

    within: float
    """Fraction of the requests whose first token came within the target; a refused one did not."""
    replica_hours: float
    turns_per_h: float
    """Changes of direction of the wanted replicas per hour."""
    ttft_p99_s: float
    refused: float
    requests: int
    most: int
    points: tuple[tuple[float, int], ...] = ()
    """(hour, replicas that are paid for)"""


def simulate(load: Load, scaler: Scaler | Schedule, arrivals: list[Cohort] | None = None) -> Result:
    """Runs the load under a policy."""
    return _Run(load, scaler, load.arrivals() if arrivals is None else arrivals).run()


class _Run:
    """The state of one run."""

    def __init__(self, load: Load, scaler: Scaler | Schedule, arrivals: list[Cohort]) -> None:
        self.load, self.scaler, self.arrivals, self.index = load, scaler, arrivals, 0
        self.tally = Tally(
            load.engine,
            target_s=load.ttft_target_s,
            counted_from=load.warm_up_s,
            counted_to=load.seconds - _LAST_S,
        )
        self.fleet = Fleet(load.engine, load.initial, self.tally, pause_s=load.pause_s, lengths=load.lengths)
        pace = 1e9 if isinstance(scaler, Schedule) else load.pace_per_s
        self.pacer = Pacer(pace, load.cold_start_s)
        self.wanted, self.paid_s, self.most = load.initial, 0.0, 0
        self.changes: list[tuple[float, int]] = []
        self.points: list[tuple[float, int]] = []

    def run(self) -> Result:
        load, looked, next_look, next_pace = self.load, 0.0, self.scaler.interval_s, 0.0
        plan = deque(self.scaler.plan) if isinstance(self.scaler, Schedule) else deque[tuple[float, int]]()
        is_pacing, every_s, next_point = True, load.seconds / _NUM_POINTS, 0.0
        while self.fleet.now < load.seconds:
            until = min(load.seconds, next_look, next_point, plan[0][0] if plan else load.seconds)
            if is_pacing:
                until = min(until, next_pace)
            if self.pacer.starting:
                until = min(until, self.pacer.starting[0])
            self._advance(max(until, self.fleet.now))
            if self.fleet.now >= next_look:
                self._look(self.fleet.now - looked)
                looked, is_pacing = self.fleet.now, True
                next_look = self._next_look(next_look + self.scaler.interval_s)
            while plan and plan[0][0] <= self.fleet.now:
                self._want(plan.popleft()[1])
                is_pacing = True
            is_ready = bool(self.pacer.starting) and self.pacer.starting[0] <= self.fleet.now + 1e-9
            if is_ready or (is_pacing and self.fleet.now >= next_pace):
                is_pacing = self.pacer.step(self.fleet, self.wanted)
                next_pace = self.fleet.now + 1.0
            if self.fleet.now >= next_point:
                self.points.append((self.fleet.now / 3600, self.fleet.replicas + len(self.pacer.starting)))
                next_point += every_s
        return self._result()

    def _next_look(self, at: float) -> float:
        """The time of the next look. A group that is cold and not asked for is not looked at before the next request:
        nothing would change."""
        fleet = self.fleet
        if self.wanted or fleet.replicas or self.pacer.starting or fleet.num_waiting or fleet.coming:
            return at
        comes = self.arrivals[self.index].at if self.index < len(self.arrivals) else self.load.seconds
        every_s = self.scaler.interval_s
        return at + max(0.0, (comes - at) // every_s) * every_s

    def _advance(self, until: float) -> None:
        counted = max(0.0, until - max(self.fleet.now, self.load.warm_up_s))
        held = self.fleet.replicas + len(self.pacer.starting)
        self.paid_s += counted * held
        self.most = max(self.most, held)
        self.index = self.fleet.run(until, self.arrivals, self.index)

    def _look(self, since_s: float) -> None:
        assert not isinstance(self.scaler, Schedule)
        now = self.fleet.now
        starting, cold_start_s = len(self.pacer.starting), self.load.cold_start_s
        age_s = cold_start_s - sum(at - now for at in self.pacer.starting) / starting if starting else 0.0
        view = view_of(self.fleet, since_s=since_s, starting=starting, age_s=age_s, cold_start_s=cold_start_s)
        self._want(self.scaler.look(view))
        self.tally.since_look = Since()

    def _want(self, wanted: int) -> None:
        if wanted != self.wanted:
            self.changes.append((self.fleet.now, wanted - self.wanted))
            self.wanted = wanted

    def _result(self) -> Result:
        load, tally = self.load, self.tally
        counted_h = (load.seconds - load.warm_up_s) / 3600
        signs = [step > 0 for at, step in self.changes if at >= load.warm_up_s]
        turns = sum(before != after for before, after in pairwise(signs))
        return Result(
            within=tally.num_within / tally.num if tally.num else 1.0,
            replica_hours=(self.paid_s + self.pacer.drained_s) / 3600,
            turns_per_h=turns / counted_h,
            ttft_p99_s=tally.percentile(0.99),
            refused=tally.num_refused / tally.num if tally.num else 0.0,
            requests=tally.num,
            most=self.most,
            points=tuple(self.points),
        )
