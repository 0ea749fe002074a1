"""Collects hints: which lanes may have jobs, and of which tenants. No I/O, no clock: every call takes the time.

Hints may be lost, so that lanes are also polled: those with a recent hint every time, the others round robin.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from axon.dispatch.hint import Hint
from axon.domain.fairness.lane import tier_of
from axon.domain.job import Job
from axon.worker.queue.order import Party, Waiting

_REMEMBERED_S = 30.0
"""A tenant is remembered for a lane for this long after the last hint."""
_ACTIVE_S = 10.0
"""A tenant with a hint in this time, whose lane may have jobs, counts as waiting."""


class Hearsay:
    """``hear`` hints, or ``find`` jobs in ``suspected`` lanes; ``clear`` lanes that are about to be taken from."""

    def __init__(self, lanes: Sequence[str], own: str) -> None:
        self._lanes, self._own = tuple(lanes), own
        self._places = {lane: place for place, lane in enumerate(self._lanes)}
        self._tiers = {lane: tier_of(lane) for lane in lanes}
        self._next_place = 0
        """Round robin among equal lanes: the index after that of the lane that was last taken from."""
        self._suspected = 0
        """Round robin over lanes to poll: the index of the next one."""
        self._hinted: dict[str, float] = {}
        """Lanes that may have jobs, with the time of the first hint, or of the last take."""
        self._parties: dict[str, dict[str, tuple[float, Party]]] = {}
        """By lane and tenant: the time of the last hint, and the tenant's weight and reserve."""
        self._asked: dict[str, float] = {}
        """Lanes that were cleared, as they stood in ``_hinted``."""
        self._later: set[str] = set()
        """Lanes to which the queue may move a job from an own lane: they are polled next time."""

    def __contains__(self, lane: str) -> bool:
        return lane in self._hinted

    def __bool__(self) -> bool:
        return bool(self._hinted)

    def hear(self, hint: Hint, now: float) -> None:
        """A hint says that a job waits in a lane; hints of other workers' own lanes are ignored."""
        for lane in (hint.lane, hint.home):
            if hint.tenant is not None and (lane in self._places or lane == self._own):
                party = Party(weight=hint.weight, reserved=hint.reserved)
                self._parties.setdefault(lane, {})[hint.tenant] = now, party
        if hint.lane in self._places or (hint.lane and hint.lane == self._own):
            self._hinted.setdefault(hint.lane, now)
        if hint.home in self._places:
            self._later.add(hint.home)  # the queue moves what is not taken from an own lane there, without a hint

    def suspected(self, now: float, *, share: float) -> list[str]:
        """The lanes to poll in case a hint was lost: those hinted at lately and, round robin, ``share`` of all."""
        self._forget(now)
        num_each = math.ceil(share * len(self._lanes))
        start, self._suspected = self._suspected, (self._suspected + num_each) % max(1, len(self._lanes))
        some = (self._lanes + self._lanes)[start : start + num_each]
        own = (self._own,) if self._own else ()
        lanes = dict.fromkeys((*own, *self._parties, *self._later, *some))
        self._later.clear()
        return [lane for lane in lanes if lane not in self._hinted]

    def find(self, lanes: Iterable[str], now: float) -> None:
        """A poll has found jobs in these lanes."""
        for lane in lanes:
            self._hinted.setdefault(lane, now)

    def clear(self, lanes: Iterable[str]) -> None:
        """These lanes are about to be taken from."""
        for lane in lanes:
            if lane in self._hinted:
                self._asked[lane] = self._hinted.pop(lane)

    def restore(self, lanes: Iterable[str]) -> None:
        """These lanes were not taken from after all, or may have more jobs."""
        for lane in lanes:
            if lane in self._asked:
                self._hinted[lane] = self._asked.pop(lane)

    def took(self, lane: str, by: str, now: float) -> None:
        """A job of ``lane`` was taken by way of ``by``, the lane itself or an own lane: both go last among equals."""
        if lane in self._places:
            self._next_place = self._places[lane] + 1
        for each in (lane, by):
            if each in self._hinted:
                self._hinted[each] = now

    def hold(self, jobs: Iterable[Job], now: float) -> None:
        """A tenant that has a job here may have more in the same lane."""
        for job in jobs:
            if job.lane in self._places:
                party = Party(weight=job.weight, reserved=job.reserved)
                self._parties.setdefault(job.lane, {})[job.tenant] = now, party

    def waiting(self, held: Mapping[str, int], now: float) -> list[Waiting]:
        """The lanes that may have jobs, round robin, without the own lane; ``held`` are the slots held here by lane."""
        lanes = [lane for lane in self._hinted if lane in self._places]
        lanes.sort(key=lambda lane: (self._places[lane] - self._next_place) % len(self._lanes))
        return [self._waiting(lane, held.get(lane, 0), now) for lane in lanes]

    def own(self, held: Mapping[str, int], now: float) -> Waiting | None:
        """The own lane, if it may have jobs; slots held by jobs of its tenants' lanes count for it."""
        if self._own not in self._hinted:
            return None
        tenants = self._parties.get(self._own, {})
        homes = {lane for lane, parties in self._parties.items() if lane != self._own and parties.keys() & tenants}
        return self._waiting(self._own, sum(held.get(lane, 0) for lane in homes), now)

    def active(self, now: float) -> set[str]:
        """The tenants that wait, as far as hints say."""
        return {
            tenant
            for lane in self._hinted
            for tenant, (heard_at, _) in self._parties.get(lane, {}).items()
            if now - heard_at <= _ACTIVE_S
        }

    def _waiting(self, lane: str, held: int, now: float) -> Waiting:
        parties = {tenant: party for tenant, (_, party) in self._parties.get(lane, {}).items()}
        tier = self._tiers.get(lane) or tier_of(lane)
        return Waiting(lane=lane, tier=tier, parties=parties, held=held, waited_s=now - self._hinted[lane])

    def _forget(self, now: float) -> None:
        for lane, parties in list(self._parties.items()):
            for tenant in [each for each, (at, _) in parties.items() if now - at > _REMEMBERED_S]:
                del parties[tenant]
            if not parties:
                del self._parties[lane]
