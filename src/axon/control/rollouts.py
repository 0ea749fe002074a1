"""Leads rollouts: begins them when their version is warm, steps them on, aborts them when it is worse. Knows no turn.

Only the leader acts. Two leaders for a moment do no harm: every write compares the record's revision.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from axon.control.golden import GoldenChecks
from axon.domain.presence import Presence
from axon.domain.registry import steps
from axon.domain.registry.comparison import Evidence, Verdict, looked, verdict_of
from axon.domain.registry.deployment import Deployment, MemberState
from axon.domain.registry.rollout import Rollout, RolloutState
from axon.domain.registry.samples import Observed
from axon.domain.registry.snapshot import Snapshot
from axon.domain.registry.steps import Action
from axon.domain.registry.warmth import cold_pools
from axon.errors import AxonError
from axon.ports.live import Presences
from axon.registry.observations import Observations
from axon.runtime.clock import Clock

ACTOR = "control"
_EVERY_S = 1.0
_CHECKING = "its golden prompts are being asked"
_NO_CHECKS = "its golden prompts cannot be asked by this control"

_logger = structlog.get_logger("axon.control")


class Registry(Protocol):
    """The registry, as control reads it."""

    async def revision(self) -> int:
        """The registry's revision."""

    async def snapshot(self) -> Snapshot:
        """Everything at one revision."""


class Writer(Protocol):
    """The registry, as control writes it."""

    async def write(self, edits: Sequence[tuple[Deployment, Deployment]], *, actor: str) -> Sequence[object] | None:
        """Compare-and-set of all or none; None when somebody else has changed one of the records meanwhile."""


@dataclass(slots=True)
class _Led:
    """What this leader remembers of a rollout that runs."""

    evidence: Evidence = field(default_factory=Evidence)
    observed: dict[str, Observed] = field(default_factory=dict)
    """The newest samples of each gateway: those of one that is gone still count."""
    cold_since: float | None = None
    """Monotonic time since which the new version lacks a worker in a pool; None while it has them."""


class Rollouts:
    """``run`` it in every control; ``look`` is one round over all deployments."""

    def __init__(
        self,
        registry: Registry,
        writer: Writer,
        observations: Observations,
        presences: Presences,
        clock: Clock,
        *,
        golden: GoldenChecks | None = None,
        leads: Callable[[], bool] = lambda: True,
        on_look: Callable[[Snapshot], None] = lambda snapshot: None,
        on_ended: Callable[[str, str, str], None] = lambda deployment, version, outcome: None,
        hide: Callable[[], None] = lambda: None,
    ) -> None:
        """``on_look`` is called with the registry that each look was at, ``on_ended`` with each rollout that is ended
        here, and ``hide`` when this process does not lead any more."""
        self._on_look, self._on_ended, self._hide = on_look, on_ended, hide
        self._registry, self._writer, self._observations = registry, writer, observations
        self._presences, self._clock, self._golden, self._leads = presences, clock, golden, leads
        self._snapshot: Snapshot | None = None
        self._led: dict[str, _Led] = {}
        """By the id of the rollout."""

    async def run(self) -> None:
        """Looks every second while this process leads, until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_S)
            if not self._leads():
                self._led.clear()
                self._hide()
                continue
            try:
                await self.look()
            except AxonError as error:
                _logger.warning("rollouts.failed", error=str(error))

    async def look(self) -> None:
        """Does what is due in every deployment; a deployment that fails leaves the others theirs."""
        if self._snapshot is None or await self._registry.revision() != self._snapshot.revision:
            self._snapshot = await self._registry.snapshot()
        snapshot = self._snapshot
        self._on_look(snapshot)
        for deployment in snapshot.deployments.values():
            try:
                await self._look_at(deployment)
            except AxonError as error:
                _logger.warning("rollout.failed", deployment=deployment.name, error=str(error))
        going = {
            each.rollout.id for each in snapshot.deployments.values() if each.rollout and not each.rollout.state.is_over
        }
        for rollout_id in self._led.keys() - going:
            del self._led[rollout_id]
            if self._golden:
                self._golden.forget(rollout_id)

    def verdict(self, rollout: Rollout) -> Verdict:
        """What the comparison says by now."""
        led = self._led.get(rollout.id)
        return verdict_of(led.evidence if led else Evidence(), rollout.tolerance, old=rollout.old, new=rollout.new)

    async def _look_at(self, deployment: Deployment) -> None:
        rollout = deployment.rollout
        registered = any(member.state is MemberState.REGISTERED for member in deployment.members)
        if registered or (rollout and rollout.state is RolloutState.WAITING):
            presences = await self._presences.all(deployment.name)
            if (ready := self._with_ready(deployment, presences)) != deployment:
                await self._write(deployment, ready, "version.ready")
                return  # the next look goes on from what is stored
            if rollout and rollout.state is RolloutState.WAITING:
                await self._try_to_begin(deployment, rollout, presences)
        if rollout and not rollout.state.is_over and rollout.state is not RolloutState.WAITING:
            await self._go_on(deployment, rollout)

    def _with_ready(self, deployment: Deployment, presences: Sequence[Presence]) -> Deployment:
        """The deployment with those members ready that have a worker in every pool that they serve.

        A version with golden prompts is ready when it has passed them.
        """
        now, rollout = self._clock.now(), deployment.rollout
        for member in deployment.members:
            if member.state is not MemberState.REGISTERED or cold_pools(deployment, member.version, presences):
                continue
            is_checked = not rollout or rollout.new != member.version or rollout.state is not RolloutState.WAITING
            if is_checked or not rollout or self._wrong(deployment, rollout) == "":
                deployment = steps.with_state(deployment, member.version, MemberState.READY, now=now)
        return deployment

    def _wrong(self, deployment: Deployment, rollout: Rollout) -> str | None:
        """Why the version does not pass its golden prompts: empty when it does, None while that is not known."""
        if not rollout.golden:
            return ""
        return self._golden.result(deployment.name, rollout) if self._golden else None

    async def _try_to_begin(self, deployment: Deployment, rollout: Rollout, presences: Sequence[Presence]) -> None:
        self._led.setdefault(rollout.id, _Led())
        now = self._clock.now()
        if cold := cold_pools(deployment, rollout.new, presences):
            await self._wait(deployment, rollout, _no_worker(rollout, cold))
            return
        wrong = self._wrong(deployment, rollout)
        if wrong is None:
            await self._wait(deployment, rollout, self._checking(rollout))
        elif wrong:
            over = steps.abort(deployment, now=now, reason=wrong, moves=False)
            await self._write(deployment, over, "rollout.aborted", reason=wrong)
        else:
            await self._write(deployment, steps.begin(deployment, cold_pools=cold, now=now), "rollout.begun")

    def _checking(self, rollout: Rollout) -> str:
        """Why a version whose golden prompts are not known to pass is still waited for."""
        if self._golden is None:
            return _NO_CHECKS
        problem = self._golden.problem(rollout)
        return f"{_CHECKING}; {problem}" if problem else _CHECKING

    async def _wait(self, deployment: Deployment, rollout: Rollout, reason: str) -> None:
        if rollout.reason != reason:
            await self._write(deployment, steps.wait(deployment, reason), "rollout.waits", reason=reason)

    async def _go_on(self, deployment: Deployment, rollout: Rollout) -> None:
        led = self._led.setdefault(rollout.id, _Led())
        led.observed |= await self._observations.all(rollout.id)
        observed = sum(led.observed.values(), Observed())
        led.evidence = looked(led.evidence, observed, rollout.tolerance)
        verdict, now = self.verdict(rollout), self._clock.now()
        cold = cold_pools(deployment, rollout.new, await self._presences.all(deployment.name))
        due = steps.next_step(rollout, now, verdict)
        if cold and due is not Action.ABORT:
            due = Action.NOTHING  # a version that nobody could answer with is given no more sessions
        match due:
            case Action.ABORT:
                over = steps.abort(deployment, now=now, reason=verdict.reason, moves=verdict.moves)
                await self._write(deployment, over, "rollout.aborted", reason=verdict.reason, moves=verdict.moves)
            case Action.STEP:
                await self._write(deployment, steps.step(deployment, now=now), "rollout.stepped")
            case Action.PROMOTE:
                done = steps.promote(deployment, now=now, reason="it was not worse in any step")
                await self._write(deployment, done, "rollout.promoted")
            case Action.NOTHING:
                await self._note_cold(deployment, rollout, led, cold)

    async def _note_cold(self, deployment: Deployment, rollout: Rollout, led: _Led, cold: frozenset[str]) -> None:
        """Records that the new version has had no worker for longer than the deployment's patience: from then on
        gateways begin sessions on the stable version. A worker that is restarted is not worth a change."""
        now = self._clock.monotonic()
        led.cold_since = (now if led.cold_since is None else led.cold_since) if cold else None
        is_gone = led.cold_since is not None and now - led.cold_since > deployment.patience_s
        reason = _no_worker(rollout, cold) if is_gone else ""
        if reason != rollout.reason and (is_gone or not cold):
            await self._write(deployment, steps.note(deployment, reason), "rollout.held_up", reason=reason)

    async def _write(self, old: Deployment, new: Deployment, event: str, **facts: object) -> None:
        """Compare-and-set. Whoever was outrun looks again in a second, at what is stored then."""
        rollout = new.rollout
        said = (rollout.new, rollout.share / 100, str(rollout.state)) if rollout else (None, None, None)
        if await self._writer.write([(old, new)], actor=ACTOR) is None:
            _logger.info("rollout.outrun", deployment=old.name, event_missed=event)
            return
        if rollout is not None and event in ("rollout.aborted", "rollout.promoted"):
            self._on_ended(old.name, rollout.new, str(rollout.state))
        log = _logger.warning if event == "rollout.aborted" else _logger.info
        version, share, state = said
        log(event, deployment=old.name, version=version, share=share, state=state, **facts)


def _no_worker(rollout: Rollout, cold: frozenset[str]) -> str:
    pools = ", ".join(pool or "the shared pool" for pool in sorted(cold))
    return f"no worker with {rollout.new} in {pools}"
