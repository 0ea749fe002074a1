"""The reconciler's loop: sees the fleet, decides, gives orders to the launcher, and reports. Only the leader runs it.

    term ─► list ─► registry, presences, demand ─► targets ─► reconcile ─► ensure, stop ─► report

It may be killed at any point: orders are levels, and the next leader begins with what the launcher lists. Its term goes
with every order, so a leader that was replaced without knowing it changes nothing.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import structlog

from axon.domain.fleet.demand import Demand
from axon.domain.fleet.desired import wanted
from axon.domain.fleet.recommended import with_workers
from axon.domain.fleet.reconcile import Decided, Ensure, Memory, Order, Pace, reconcile
from axon.domain.fleet.replica import Group, Launched
from axon.domain.fleet.sight import Sight, Target
from axon.domain.fleet.status import MAX_REPLICAS, Decision, FleetStatus, replica_status
from axon.domain.presence import Presence
from axon.domain.registry.snapshot import Snapshot
from axon.errors import AxonError, StaleTerm
from axon.ports.launcher import Launcher
from axon.ports.live import Leases, Presences
from axon.ports.store import Terms
from axon.runtime.clock import Clock

KEPT_DECISIONS = 100

_logger = structlog.get_logger("axon.control")


class Targets(Protocol):
    """Says how many replicas each group shall have: an autoscaler, or the least that the registry asks for."""

    async def __call__(self, sight: Sight) -> Mapping[Group, Target]:
        """The targets of one look, in the order of looks; a group that is left out keeps what it has."""


class Registry(Protocol):
    """The registry, as it is read here."""

    async def revision(self) -> int: ...

    async def snapshot(self) -> Snapshot: ...


class DemandReader(Protocol):
    """Counts the demand for groups."""

    async def look(self, snapshot: Snapshot, groups: Sequence[Group]) -> Mapping[Group, Demand]:
        """The demand for each group, as far as it is known."""


class Reports(Protocol):
    """Takes the leader's reports."""

    async def put(self, status: FleetStatus) -> None: ...

    async def last(self) -> FleetStatus | None: ...


@dataclass(slots=True, kw_only=True)
class _Reign:
    """What this process remembers while it leads."""

    term: int
    targets: Targets
    memory: Memory = field(default_factory=Memory)
    snapshot: Snapshot | None = None
    decisions: deque[Decision] = field(default_factory=lambda: deque(maxlen=KEPT_DECISIONS))


class Reconciler:
    """``run`` it in every control; ``look`` is one round."""

    def __init__(
        self,
        launcher: Launcher,
        terms: Terms,
        registry: Registry,
        presences: Presences,
        leases: Leases,
        demand: DemandReader,
        make_targets: Callable[[], Targets],
        reports: Reports,
        clock: Clock,
        *,
        name: str,
        kind: str = "",
        every_s: float = 1.0,
        deposed_s: float = 3.0,
        lapse_s: float = 10.0,
        pace: Pace | None = None,
        leads: Callable[[], bool] = lambda: True,
        on_look: Callable[[Decided, Sequence[Launched]], None] = lambda decided, launched: None,
        on_order: Callable[[Order, str], None] = lambda order, error: None,
    ) -> None:
        """``make_targets`` is called when a reign begins: nothing that an earlier one saw counts any more, unless its
        lease lapsed for at most ``lapse_s`` and nobody has led in between. ``name`` is
        this control's and ``kind`` its launcher's, for the report. ``deposed_s`` is longer than a
        leader's lease: whoever still leads that long after another leader's term was seen has renewed its own."""
        self._launcher, self._terms, self._registry = launcher, terms, registry
        self._presences, self._leases, self._demand = presences, leases, demand
        self._make_targets, self._reports, self._clock = make_targets, reports, clock
        self._name, self._kind, self._every_s, self._deposed_s = name, kind, every_s, deposed_s
        self._lapse_s = lapse_s
        self._pace, self._leads, self._on_look, self._on_order = pace or Pace(), leads, on_look, on_order
        self._reign: _Reign | None = None
        self._lapsed: _Reign | None = None
        self._lapsed_at = self._deposed_at = float("-inf")

    async def run(self) -> None:
        """Looks while this process leads, until cancelled."""
        while True:
            await asyncio.sleep(self._every_s)
            try:
                await self.look()
            except AxonError as error:
                _logger.warning("fleet.not_looked_at", error=str(error))

    async def look(self) -> None:
        """Does what is due in the fleet, if this process leads."""
        reign = await self._reigning()
        if reign is None:
            return
        launched: Sequence[Launched] = ()
        problem, decided, sight = "", None, None
        try:
            launched = await self._launcher.list()
            sight = await self._see(reign, launched)
            launched = sight.launched or ()
            targets = await reign.targets(sight)
            decided = reconcile(sight, targets, reign.memory, now=self._clock.monotonic(), pace=self._pace)
            reign.memory = decided.memory
            await self._carry_out(decided.orders, reign)
            self._on_look(decided, launched)
        except AxonError as error:
            problem = str(error)
            _logger.warning("fleet.not_looked_at", error=problem)
        if self._reign is reign:
            await self._reports.put(self._report(reign, launched, sight, decided, problem))

    async def _reigning(self) -> _Reign | None:
        """This leader's reign, with a term from the store; None while another one's orders count."""
        now = self._clock.monotonic()
        if not self._leads():
            if self._reign is not None:
                self._lapsed, self._lapsed_at = self._reign, now
            self._end_reign()
        elif self._reign is None and now - self._deposed_at >= self._deposed_s:
            self._reign = await self._begin_reign(now)
            _logger.info("fleet.led", control=self._name, term=self._reign.term)
        return self._reign

    async def _begin_reign(self, now: float) -> _Reign:
        """A reign with a new term. The next number after its last one says that nobody else has led since: then it
        goes on with what it knew. A busy processor lets leases lapse that nobody else takes."""
        term, lapsed = await self._terms.take(), self._lapsed
        self._lapsed = None
        if lapsed is not None and term == lapsed.term + 1 and now - self._lapsed_at <= self._lapse_s:
            return replace(lapsed, term=term)
        reign = _Reign(term=term, targets=self._make_targets())
        reign.decisions.extend(await self._decided_before())
        return reign

    async def _decided_before(self) -> Sequence[Decision]:
        """The decisions of earlier reigns, for whoever reads the reports; none of them counts for anything else."""
        try:
            last = await self._reports.last()
        except AxonError as error:
            _logger.warning("fleet.decisions_unknown", error=str(error))
            return ()
        return last.decisions if last else ()

    def _end_reign(self) -> None:
        if self._reign is not None:
            self._reign = None
            self._on_look(Decided(orders=(), groups=(), memory=Memory()), ())

    async def _see(self, reign: _Reign, launched: Sequence[Launched]) -> Sight:
        if reign.snapshot is None or await self._registry.revision() != reign.snapshot.revision:
            reign.snapshot = await self._registry.snapshot()
        snapshot = reign.snapshot
        groups = sorted({*wanted(snapshot), *(each.name.group for each in launched)})
        demand = await self._demand.look(snapshot, groups)
        names = sorted({*snapshot.deployments, *(group.deployment for group in groups)})
        run_id, presences = await self._announced(names)
        if self._kind == "external":
            launched = with_workers(launched, presences or ())
        return Sight(snapshot=snapshot, launched=launched, presences=presences, run_id=run_id, demand=demand)

    async def _announced(self, deployments: Sequence[str]) -> tuple[str | None, Sequence[Presence] | None]:
        """The run of ``live`` and all presences in it; None for both while it does not answer."""
        try:
            run_id = await self._leases.run_id()
            return run_id, [each for name in deployments for each in await self._presences.all(name)]
        except AxonError as error:
            _logger.warning("fleet.presences_unknown", error=str(error))
            return None, None

    async def _carry_out(self, orders: Sequence[Order], reign: _Reign) -> None:
        for order in orders:
            if not self._leads():
                return
            error = ""
            try:
                await self._order(order, reign.term)
            except StaleTerm as stale:
                self._end_reign()
                self._deposed_at = self._clock.monotonic()
                _logger.warning("fleet.deposed", control=self._name, term=reign.term, error=str(stale))
                return
            except AxonError as failed:
                error = str(failed)
            self._note(order, error, reign)

    async def _order(self, order: Order, term: int) -> None:
        if isinstance(order, Ensure):
            await self._launcher.ensure(order.name, order.spec, term=term)
        else:
            await self._launcher.stop(order.name, order.incarnation, term=term)

    def _note(self, order: Order, error: str, reign: _Reign) -> None:
        is_ensure = isinstance(order, Ensure)
        action = "ensure" if is_ensure else "stop"
        decision = Decision(
            at=self._clock.now(), action=action, replica=str(order.name), reason=order.reason, error=error
        )
        reign.decisions.appendleft(decision)
        self._on_order(order, error)
        if error:
            _logger.warning("fleet.order_failed", action=action, replica=decision.replica, error=error)
        else:
            _logger.info(
                "fleet.ensured" if is_ensure else "fleet.stopped",
                replica=decision.replica,
                reason=order.reason,
                term=reign.term,
            )

    def _report(
        self, reign: _Reign, launched: Sequence[Launched], sight: Sight | None, decided: Decided | None, problem: str
    ) -> FleetStatus:
        announced = {each.worker: each.draining for each in (sight.presences or () if sight else ())}
        return FleetStatus(
            at=self._clock.now(),
            leader=self._name,
            term=reign.term,
            launcher=self._kind,
            groups=decided.groups if decided else (),
            replicas=tuple(replica_status(each, announced) for each in launched[:MAX_REPLICAS]),
            num_replicas=len(launched),
            decisions=tuple(reign.decisions),
            held=decided.held if decided else "",
            problem=problem,
        )
