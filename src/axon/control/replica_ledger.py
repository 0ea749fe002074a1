"""Writes down who pays for replicas' time: for starts from cold, and for replicas of a tenant's own pool.

It wraps the targets, because it needs the same sight of the fleet at each look; it changes none of them. Every
record has an id made of the replica's run and is only ever raised, so a leader may die anywhere, and two leaders write
the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from axon.control.reconciler import Targets
from axon.domain.billing.replica_use import ReplicaUse, UseKind, price_nanos
from axon.domain.fleet.desired import Wanted, meant
from axon.domain.fleet.replica import Group, Launched, LaunchState, ReplicaName
from axon.domain.fleet.sight import Sight, Target
from axon.domain.tenants.tenant import Terms, terms_of
from axon.errors import AxonError
from axon.ports.store import PlanStore, TenantStore, UnfinishedTurns, UsageStore
from axon.runtime.clock import Clock

_DAY_S = 86_400.0
_WRITE_S = 15.0
"""Seconds between two writes of the time of replicas that go on."""
_MOST_UNWRITTEN = 10_000
"""Records that are kept while the store is away; the oldest go first."""
_OWNERS_S = 60.0
"""Seconds for which the owners of pools are remembered."""

_logger = structlog.get_logger("axon.control")


@dataclass(frozen=True, slots=True, kw_only=True)
class Payers:
    """The stores that say who pays, and where the payments are written."""

    turns: UnfinishedTurns
    tenants: TenantStore
    plans: PlanStore
    usage: UsageStore
    defaults: Terms
    """Terms of a tenant that has none of its own."""


class LedgeredTargets:
    """Wraps the ``Targets`` of one reign of a leader: passes them on, and writes down who pays for their replicas."""

    def __init__(self, targets: Targets, payers: Payers, clock: Clock) -> None:
        self._targets, self._payers, self._clock = targets, payers, clock
        self._starts: dict[tuple[ReplicaName, str], ReplicaUse] = {}
        """Starts from cold that go on, by replica and run."""
        self._unwritten: dict[str, ReplicaUse] = {}
        """By id; kept until the store has them."""
        self._owners: Mapping[str, Sequence[str]] = {}
        self._owners_at = self._written_at = float("-inf")

    async def __call__(self, sight: Sight) -> Mapping[Group, Target]:
        targets = await self._targets(sight)
        try:
            await self._note(sight)
        except AxonError as error:
            _logger.warning("fleet.uses_not_written", error=str(error))
        return targets

    async def _note(self, sight: Sight) -> None:
        if sight.launched is None or sight.presences is None:
            return
        now = self._clock.monotonic()
        is_due = now - self._written_at >= _WRITE_S
        await self._look_at_starts(sight)
        if is_due:
            self._written_at = now
            self._owe([*self._starts.values(), *await self._dedicated(sight)])
        if self._unwritten:
            await self._payers.usage.add_replicas(list(self._unwritten.values()))
            self._unwritten.clear()

    def _owe(self, uses: Iterable[ReplicaUse]) -> None:
        self._unwritten |= {use.id: use for use in uses}
        while len(self._unwritten) > _MOST_UNWRITTEN:
            del self._unwritten[next(iter(self._unwritten))]

    async def _look_at_starts(self, sight: Sight) -> None:
        """Finds starts that have begun or ended since the last look. What began is written at once, so that a leader
        that dies leaves who pays."""
        announced, at = {each.worker for each in sight.presences or ()}, self._clock.now()
        warm = {each.name.group for each in sight.launched or () if each.announced in announced}
        there = {(each.name, each.incarnation): each for each in sight.launched or ()}
        for key, use in list(self._starts.items()):
            self._starts[key] = replace(use, seconds=max(use.seconds, at - use.at))
            if key not in there or there[key].announced in announced:
                self._owe([self._starts.pop(key)])
        for key, each in there.items():
            of = meant(sight.snapshot, each.name.group)
            if key in self._starts or of is None or each.name.group in warm or not _is_cold_start(each, of, at):
                continue
            tenant = await self._payers.turns.first_unfinished(each.name.group.deployment, each.spec.version)
            if tenant is not None:
                use = self._starts[key] = _use(UseKind.COLD_START, tenant, each, of, began=each.since, until=at)
                self._owe([use])

    async def _dedicated(self, sight: Sight) -> list[ReplicaUse]:
        """All time of the replicas in tenants' own pools, divided where several tenants share one. Each state of a
        replica and each day is a record of its own, since a launcher tells only when a state began."""
        found, at = list[ReplicaUse](), self._clock.now()
        for each in sight.launched or ():
            of = meant(sight.snapshot, each.name.group)
            owners = await self._owners_of(each.name.group.pool) if each.name.group.pool else ()
            if of is None or each.state in (LaunchState.LOST, LaunchState.WAITING):
                continue
            for began, until in _by_day(each.since, at):
                uses = [_use(UseKind.DEDICATED, tenant, each, of, began=began, until=until) for tenant in owners]
                found += [replace(use, seconds=use.seconds / len(owners)) for use in uses]
        return found

    async def _owners_of(self, pool: str) -> Sequence[str]:
        """Tenants whose turns are served by this pool."""
        now = self._clock.monotonic()
        if now - self._owners_at >= _OWNERS_S:
            plans = {plan.name: plan for plan in await self._payers.plans.all()}
            owners: dict[str, list[str]] = {}
            for tenant in await self._payers.tenants.all():
                terms = terms_of(tenant, plans.get(tenant.plan), self._payers.defaults)
                owners.setdefault(terms.pool, []).append(tenant.id)
            self._owners, self._owners_at = owners, now
        return self._owners.get(pool, ())


def _by_day(since: float, at: float) -> list[tuple[float, float]]:
    """The part of the time that lies in this day; soon after midnight also the last day's, whose end is known now."""
    midnight = at - at % _DAY_S
    is_new_day = since < midnight and at - midnight < _OWNERS_S
    return [*([(max(since, midnight - _DAY_S), midnight)] if is_new_day else []), (max(since, midnight), at)]


def _is_cold_start(each: Launched, of: Wanted, at: float) -> bool:
    """Whether it starts because somebody asked for a deployment that is cold. A dedicated pool's time is its owner's
    as a whole, and what runs by the clock or by a minimum is nobody's request."""
    starts = each.state in (LaunchState.STARTING, LaunchState.RUNNING)
    deployment = of.deployment
    return starts and not each.name.group.pool and deployment.may_be_cold and not deployment.least_replicas(at)


def _use(kind: UseKind, tenant: str, each: Launched, of: Wanted, *, began: float, until: float) -> ReplicaUse:
    scaling, group = of.deployment.scaling, each.name.group
    whose = f"/{tenant}/{int(began)}" if kind is UseKind.DEDICATED else ""
    return ReplicaUse(
        id=f"{kind}/{each.name}/{each.incarnation}{whose}",
        kind=kind,
        tenant=tenant,
        deployment=group.deployment,
        version=each.spec.version,
        pool=group.pool,
        at=began,
        seconds=max(0.0, until - began),
        price_nanos=price_nanos(scaling.price_per_h),
        currency=scaling.currency if scaling.price_per_h > 0 else "",
    )
