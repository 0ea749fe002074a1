"""Lanes that may have jobs, and whose these may be, as hints tell. Pure: times come with what is told.

Hints may be lost, so that lanes are suspected now and then, to be looked at: those that were spoken of lately each
time, the others by turns.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from axon.dispatch.hint import Hint
from axon.domain.job import Job
from axon.domain.lane import tier_of
from axon.worker.queue.order import Party, Waiting

_REMEMBERED_S = 30.0
"""For how long it is known who has jobs in a lane."""
_ACTIVE_S = 10.0
"""Spoken of within it, a tenant whose lane may have jobs counts as one that waits."""


class Hearsay:
    """``hear`` of lanes, or ``find`` jobs in those ``suspected``; ``clear`` those that are taken from."""

    def __init__(self, lanes: Sequence[str], own: str) -> None:
        self._lanes, self._own = tuple(lanes), own
        self._places = {lane: place for place, lane in enumerate(self._lanes)}
        self._tiers = {lane: tier_of(lane) for lane in lanes}
        self._turn = 0
        """Whose turn it is among equals: the place after the last lane that was taken from."""
        self._suspected = 0
        self._hinted: dict[str, float] = {}
        """Lanes that may have jobs, and since when, or since they last had their turn."""
        self._parties: dict[str, dict[str, tuple[float, Party]]] = {}
        """By lane and tenant, when it was last spoken of."""
        self._asked: dict[str, float] = {}
        self._later: set[str] = set()

    def __contains__(self, lane: str) -> bool:
        return lane in self._hinted

    def __bool__(self) -> bool:
        return bool(self._hinted)

    def hear(self, hint: Hint, now: float) -> None:
        """There may be a job in this lane, as far as it concerns us: another worker's own lane does not."""
        for lane in (hint.lane, hint.home):
            if hint.tenant is not None and (lane in self._places or lane == self._own):
                party = Party(weight=hint.weight, reserved=hint.reserved)
                self._parties.setdefault(lane, {})[hint.tenant] = now, party
        if hint.lane in self._places or (hint.lane and hint.lane == self._own):
            self._hinted.setdefault(hint.lane, now)
        if hint.home in self._places:
            self._later.add(hint.home)  # what is not taken from an own lane goes there, and nobody says so

    def suspected(self, now: float, *, share: float) -> list[str]:
        """Lanes to look at, in case a hint was lost: those spoken of, and by turns this share of all."""
        self._forget(now)
        num_each = math.ceil(share * len(self._lanes))
        start, self._suspected = self._suspected, (self._suspected + num_each) % max(1, len(self._lanes))
        some = (self._lanes + self._lanes)[start : start + num_each]
        own = (self._own,) if self._own else ()
        lanes = dict.fromkeys((*own, *self._parties, *self._later, *some))
        self._later.clear()
        return [lane for lane in lanes if lane not in self._hinted]

    def find(self, lanes: Iterable[str], now: float) -> None:
        """These have jobs."""
        for lane in lanes:
            self._hinted.setdefault(lane, now)

    def clear(self, lanes: Iterable[str]) -> None:
        """These are about to be taken from."""
        for lane in lanes:
            if lane in self._hinted:
                self._asked[lane] = self._hinted.pop(lane)

    def restore(self, lanes: Iterable[str]) -> None:
        """These were not taken from after all, or may have more."""
        for lane in lanes:
            if lane in self._asked:
                self._hinted[lane] = self._asked.pop(lane)

    def took(self, lane: str, by: str, now: float) -> None:
        """A job of ``lane`` was taken by way of ``by``: it has had its turn."""
        if lane in self._places:
            self._turn = self._places[lane] + 1
        for each in (lane, by):
            if each in self._hinted:
                self._hinted[each] = now

    def hold(self, jobs: Iterable[Job], now: float) -> None:
        """Whoever has a job here may have more where it came from."""
        for job in jobs:
            if job.lane in self._places:
                party = Party(weight=job.weight, reserved=job.reserved)
                self._parties.setdefault(job.lane, {})[job.tenant] = now, party

    def waiting(self, held: Mapping[str, int], now: float) -> list[Waiting]:
        """The lanes that may have jobs, in turn; ``held`` slots by lane. The own lane is not among them."""
        lanes = [lane for lane in self._hinted if lane in self._places]
        lanes.sort(key=lambda lane: (self._places[lane] - self._turn) % len(self._lanes))
        return [self._waiting(lane, held.get(lane, 0), now) for lane in lanes]

    def own(self, held: Mapping[str, int], now: float) -> Waiting | None:
        """The own lane, where it may have jobs; what is held of those jobs' lanes counts for it."""
        if self._own not in self._hinted:
            return None
        tenants = self._parties.get(self._own, {})
        homes = {lane for lane, parties in self._parties.items() if lane != self._own and parties.keys() & tenants}
        return self._waiting(self._own, sum(held.get(lane, 0) for lane in homes), now)

    def active(self, now: float) -> set[str]:
        """Tenants that wait, as far as one knows."""
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
