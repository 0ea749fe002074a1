"""The oracle: the least schedule of replicas that serves the known arrivals within the target. Knows the future.

1. For each span of 10 s, in order, the least number of replicas is searched with which every request that arrives in
   the span gets its first token within the target; the fleet's state is carried over from the spans before.
2. A replica that would stop for less time than a start takes is kept: to stop it would cost more.
3. Every replica is ordered one cold-start time before it must serve, and paid for from then on, as by every policy.
"""

from math import ceil

from benchmarks.scaling.fleet import Fleet
from benchmarks.scaling.load import Cohort, Load
from benchmarks.scaling.simulation import DRAIN_S
from benchmarks.scaling.tally import Tally

SPAN_S = 10.0


def least_schedule(load: Load, arrivals: list[Cohort]) -> list[tuple[float, int]]:
    """(Time at which to order, replicas), for ``policies.Schedule``."""
    needed = _needed(load, arrivals)
    kept = _kept(needed, gap=int((load.cold_start_s + DRAIN_S) / SPAN_S))
    plan: list[tuple[float, int]] = []
    for index, replicas in enumerate(kept):
        before = kept[index - 1] if index else load.initial
        if replicas > before:
            plan.append((max(0.0, index * SPAN_S - load.cold_start_s), replicas))
        elif replicas < before:
            plan.append((index * SPAN_S, replicas))
    return _merged(plan, kept, load)


def fluid_hours(load: Load, arrivals: list[Cohort]) -> float:
    """Replica hours of the work alone, at full batches and without a wait: no schedule has fewer."""
    work_s = sum(
        each.weight * load.engine.seconds(each.prompt, each.answer) * (1 + each.turns)
        for each in arrivals
        if each.at >= load.warm_up_s
    )
    return work_s / 3600


def _needed(load: Load, arrivals: list[Cohort]) -> list[int]:
    fleet, index, needed = (
        Fleet(load.engine, load.initial, _Watch(load, 0.0), pause_s=load.pause_s, lengths=load.lengths),
        0,
        list[int](),
    )
    replicas = load.initial
    for span in range(int(load.seconds / SPAN_S)):
        start = span * SPAN_S
        if _is_idle(fleet, arrivals, index, start + SPAN_S):
            replicas = 0
            fleet.resize(0)
            index = fleet.run(start + SPAN_S, arrivals, index)
        else:
            replicas, fleet, index = _least(load, fleet, arrivals, index, start, max(1, replicas))
        needed.append(replicas)
    return needed


def _is_idle(fleet: Fleet, arrivals: list[Cohort], index: int, until: float) -> bool:
    comes = index < len(arrivals) and arrivals[index].at < until
    returns = bool(fleet.coming) and fleet.coming[0].at < until
    return not (comes or returns or fleet.num_running or fleet.num_waiting)


def _least(
    load: Load, fleet: Fleet, arrivals: list[Cohort], index: int, start: float, guess: int
) -> tuple[int, Fleet, int]:
    """The least replicas that serve the span's arrivals in time, with the fleet and the index after the span. Searched
    outwards from a guess, then by halves."""
    tried: dict[int, tuple[Fleet, int] | None] = {}

    def suffices(replicas: int) -> bool:
        if replicas not in tried:
            tried[replicas] = _served(load, fleet, arrivals, index, start, replicas)
        return tried[replicas] is not None

    low, high, step = 0, guess, 1
    if suffices(guess):
        while high > 1 and suffices(max(1, high - step)):
            high, step = max(1, high - step), 2 * step
        low = max(0, high - step)
    else:
        low, high = guess, guess + 1
        while not suffices(high):
            low, step = high, 2 * step
            high = low + step
            if low > 4 * load.most:
                raise ValueError(f"no number of replicas serves the requests of '{load.name}' from {start:.0f} s on")
    while high - low > 1:
        middle = (low + high) // 2
        if suffices(middle):
            high = middle
        else:
            low = middle
    after = tried[high]
    assert after is not None
    return high, *after


def _served(
    load: Load, fleet: Fleet, arrivals: list[Cohort], index: int, start: float, replicas: int
) -> tuple[Fleet, int] | None:
    """The fleet after the span, and the index of the next arrival; None where a request of the span is late."""
    watch = _Watch(load, start)
    trial = fleet.copy(watch)
    if trial.replicas != replicas:
        trial.resize(replicas)
    for second in range(1, int(SPAN_S) + 1):
        index = trial.run(start + second, arrivals, index)
        if watch.num_late or watch.num_refused:
            return None
    after = trial.copy(watch)
    # What came late in the span has its target's time: with the same replicas, and without those who come after it.
    trial.coming = []
    trial.run(start + SPAN_S + load.ttft_target_s, [], 0)
    return (after, index) if watch.num_late == 0 and watch.num_open == 0 else None


class _Watch(Tally):
    """Counts which requests of one span were late or still wait."""

    def __init__(self, load: Load, start: float) -> None:
        super().__init__(load.engine, target_s=load.ttft_target_s, counted_from=start)
        self.num_late = self.num_open = 0

    def arrived(self, cohort: Cohort) -> None:
        self.num_open += cohort.weight

    def first_token(self, cohort: Cohort, ttft_s: float) -> None:
        if cohort.at >= self.counted_from:
            self.num_open -= cohort.weight
        self.num_late += cohort.weight * (ttft_s > self.target_s)

    def ended(self, cohort: Cohort, replicas: int) -> None:
        pass

    def took(self, cohort: Cohort) -> None:
        pass


def _kept(needed: list[int], gap: int) -> list[int]:
    """Each replica, counted by its level, is kept over gaps that are no longer than ``gap`` spans."""
    kept = needed.copy()
    for level in range(1, max(needed, default=0) + 1):
        last = None
        for index, replicas in enumerate(needed):
            if replicas >= level:
                if last is not None and 0 < index - last - 1 <= gap:
                    for between in range(last + 1, index):
                        kept[between] = max(kept[between], level)
                last = index
    return kept


def _merged(plan: list[tuple[float, int]], kept: list[int], load: Load) -> list[tuple[float, int]]:
    """Orders in time: an order ahead of a need must not be undone by a stop that lies between the two."""
    ahead = ceil(load.cold_start_s / SPAN_S)
    times = sorted({at for at, _ in plan})
    merged = []
    for at in times:
        first = int(at / SPAN_S)
        merged.append((at, max(kept[first : first + ahead + 1] or [0])))
    return merged
