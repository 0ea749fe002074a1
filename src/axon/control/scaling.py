"""Targets by the autoscaler: reads what workers report of their service and what waits, and asks the pure decision."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from axon.domain.fleet.desired import Idle, Wanted, least, wanted
from axon.domain.fleet.replica import Group, LaunchState
from axon.domain.fleet.sight import Sight, Target
from axon.domain.presence import Presence, Service, service_rate
from axon.domain.registry.deployment import Deployment
from axon.domain.scaling.decide import decide
from axon.domain.scaling.intake import Intake, Taken
from axon.domain.scaling.memory import Memory
from axon.domain.scaling.policy import ScalingPolicy
from axon.domain.scaling.signals import Signals
from axon.domain.scaling.work import Speed, Work
from axon.errors import AxonError
from axon.registry.cold_starts import ColdStarts
from axon.runtime.clock import Clock

_OWN_TARGETS = ("target_wait_s", "ttft_target_s", "itl_target_s")
_BAND = 0.05
"""The used slots may be this much above or below the deployment's aim."""
_GAP_LOOKS = 3.0
"""Looks without a decision after which what was remembered says nothing of how long the load has been low."""
_DEAF_S = 9.0
"""Three lifetimes of a presence."""


@dataclass(slots=True)
class _Watched:
    """What is remembered of a group between looks."""

    memory: Memory = field(default_factory=Memory)
    intake: Intake = field(default_factory=Intake)
    seen: dict[str, Taken] = field(default_factory=dict)
    """By incarnation: what each worker had reported at the last look."""
    heard: frozenset[str] = frozenset()
    """Names of the workers that announced themselves at the last look that counted."""
    deaf_since: float | None = None
    """Monotonic time since which half of them have been silent although they run."""
    taken: Taken = field(default_factory=Taken)
    """Everything that was taken since this leader watches."""
    target: Target | None = None
    decided_at: float = float("-inf")


class ScaledTargets:
    """A ``Targets`` of one reign of a leader."""

    def __init__(
        self,
        policy: ScalingPolicy,
        cold_starts: ColdStarts,
        clock: Clock,
        *,
        deaf_s: float = _DEAF_S,
        on_decision: Callable[[Group, int, int, str], None] = lambda group, before, after, reason: None,
    ) -> None:
        """``policy`` has what all deployments share; bounds and idle times are the deployments' own. Nothing is
        decided for ``deaf_s`` seconds while half of the workers that the launcher says run are silent."""
        self._policy, self._cold_starts, self._clock, self._deaf_s = policy, cold_starts, clock, deaf_s
        self._idle, self._on_decision = Idle(), on_decision
        self._watched: dict[Group, _Watched] = {}

    async def __call__(self, sight: Sight) -> Mapping[Group, Target]:
        """The least that the registry asks for, and more where the load asks for more."""
        now = self._clock.monotonic()
        floors, self._idle = least(sight, self._idle, now=now, at=self._clock.now())
        known = wanted(sight.snapshot)
        self._watched = {group: self._watched.get(group, _Watched()) for group in known}
        return {group: await self._target(sight, group, known[group], floor, now) for group, floor in floors.items()}

    async def _target(self, sight: Sight, group: Group, of: Wanted, floor: Target, now: float) -> Target:
        watched = self._watched[group]
        demand = sight.demand_of(group)
        presences = [
            each
            for each in sight.presences or ()
            if each.deployment.version == of.spec.version and each.deployment.name == group.deployment
            if each.pool == group.pool
        ]
        if not floor.count:  # nobody asks: no reason to have more
            watched.target, watched.memory = None, replace(watched.memory, replicas=0)
            return floor
        held = _larger(floor, watched.target or _present(sight, group, presences))
        if sight.presences is None or demand is None or self._is_deaf(watched, sight, group, presences, now):
            return held
        _watch(watched, presences)
        if now - watched.decided_at < self._policy.look_s:
            return held
        waiting, unfinished = demand.waiting or 0, demand.unfinished or 0
        if now - watched.decided_at > _GAP_LOOKS * self._policy.look_s:
            # Nobody watched meanwhile: as after a change of leaders, the hold time begins anew.
            watched.memory = replace(watched.memory, quiet_since=None)
        is_first = watched.intake.at is None
        arrived, watched.intake = watched.intake.look(now, watched.taken, waiting)
        signals = replace(
            _signals(sight, group, presences, self._clock.now()),
            arrived=None if is_first else arrived,
            backlog=watched.intake.backlog(demand.waiting_by_tier, pending=_pending(presences)),
            demand=max(waiting, unfinished),
            cold_start_s=await self._cold_start_s(of.spec.version),
        )
        policy = _policy(self._policy, of.deployment, floor.count)
        decision = decide(policy, signals, watched.memory, self._clock.now())
        watched.memory, watched.decided_at = decision.memory, now
        reason = decision.reason if decision.replicas > floor.count else floor.reason
        before = held.count if watched.target is None else watched.target.count
        self._on_decision(group, before, max(floor.count, decision.replicas), reason)
        watched.target = Target(max(floor.count, decision.replicas), reason, most=max(floor.count, policy.most))
        return watched.target

    def _is_deaf(
        self, watched: _Watched, sight: Sight, group: Group, presences: Sequence[Presence], now: float
    ) -> bool:
        """Whether so many workers are silent that what the others report says nothing of the load: ``live`` may have
        lost its memory. What they serve meanwhile is counted when they are back, over the whole time."""
        running = {
            each.announced
            for each in sight.launched or ()
            if each.name.group == group and each.state is LaunchState.RUNNING
        }
        announced, expected = frozenset(each.worker for each in presences), watched.heard & running
        if expected and 2 * len(expected - announced) >= len(expected):
            watched.deaf_since = now if watched.deaf_since is None else watched.deaf_since
            if now - watched.deaf_since < self._deaf_s:
                return True
        watched.heard, watched.deaf_since = announced, None
        return False

    async def _cold_start_s(self, version: str) -> float | None:
        try:
            measured = await self._cold_starts.of(version)
        except AxonError:
            return None
        return measured.seconds if measured else None


def _present(sight: Sight, group: Group, presences: Sequence[Presence]) -> Target:
    """What runs, as a leader that has decided nothing yet keeps it: it knows no load that it could go by. Where
    somebody else starts workers, only they tell of themselves."""
    serving = [
        each
        for each in sight.launched or ()
        if each.name.group == group and each.state in (LaunchState.STARTING, LaunchState.RUNNING, LaunchState.WAITING)
    ]
    there = sum(not each.draining for each in presences)
    return Target(max(len(serving), there), "what it needs is not known yet")


def _larger(floor: Target, target: Target) -> Target:
    return target if target.count > floor.count else floor


def _policy(shared: ScalingPolicy, deployment: Deployment, least_count: int) -> ScalingPolicy:
    """The policy of one of the deployment's groups: its own targets, where it has some, over those of all."""
    own = deployment.scaling
    targets: dict[str, Any] = {name: getattr(own, name) for name in _OWN_TARGETS if getattr(own, name) > 0}
    if own.utilisation > 0:
        targets |= {"utilisation_low": own.utilisation - _BAND, "utilisation_high": own.utilisation + _BAND}
    return replace(
        shared,
        min_replicas=least_count,
        max_replicas=max(least_count, deployment.most_replicas),
        hot=deployment.hot,
        **targets,
    )


def _watch(watched: _Watched, presences: Sequence[Presence]) -> None:
    """Adds what workers have taken since the last look. One that was silent then counts from now on: all that it
    has served meanwhile, or ever, would look like a crowd."""
    jobs, work, seen = watched.taken.jobs, watched.taken.work, dict[str, Taken]()
    for each in presences:
        told = seen[each.incarnation] = _taken(each.load.service)
        before = watched.seen.get(each.incarnation, told)
        jobs += max(0.0, told.jobs - before.jobs)
        work += Work(
            prompt=max(0.0, told.work.prompt - before.work.prompt),
            answer=max(0.0, told.work.answer - before.work.answer),
        )
    watched.seen, watched.taken = seen, Taken(jobs=jobs, work=work)


def _taken(told: Service) -> Taken:
    """What a worker has taken. A worker of the release before does not report it; what it has served counts instead."""
    if not told.taken_jobs:
        return Taken(jobs=told.jobs, work=Work(prompt=told.prompt_tokens, answer=told.answer_tokens))
    return Taken(jobs=told.taken_jobs, work=Work(prompt=told.taken_prompt, answer=told.expected_tokens))


def _signals(sight: Sight, group: Group, presences: Sequence[Presence], at: float) -> Signals:
    """The signals of a group at a Unix time, by what its workers report."""
    ready = [each for each in presences if not each.draining]
    launched = [each for each in sight.launched or () if each.name.group == group]
    announced = {each.worker for each in presences}
    starting = [
        each
        for each in launched
        if each.state in (LaunchState.STARTING, LaunchState.RUNNING) and each.announced not in announced
    ]
    used = sum(each.load.slots - each.load.free_slots for each in ready)
    slots = sum(each.load.slots for each in ready)
    services = [each.load.service for each in ready]
    remaining = [each.remaining_tokens for each in services if each.remaining_tokens is not None]
    return Signals(
        ready=len(ready),
        starting=len(starting),
        starting_age_s=_mean([max(0.0, at - each.since) for each in starting]),
        draining=len(presences) - len(ready),
        slots=slots / len(ready) if ready else 0.0,
        running=float(used),
        remaining=Work(answer=sum(remaining)),
        speed=_speed(ready),
        utilisation=used / slots if slots else None,
        kv_use=_largest([each.kv_use for each in services]),
        ttft_s=_largest([each.ttft_s for each in services]),
        itl_s=_largest([each.itl_s for each in services]),
    )


def _pending(presences: Sequence[Presence]) -> Work:
    """Work of the prompts that were taken and have no token yet."""
    return Work(prompt=sum(each.load.service.pending_prompt for each in presences))


def _speed(ready: Sequence[Presence]) -> Speed:
    """The mean throughput of a worker, by what steps cost and by what full workers have served."""
    rate, services = service_rate(ready), [each.load.service for each in ready]
    return Speed(
        prefill=_mean([each.prefill_per_s for each in services if each.prefill_per_s]),
        decode=_mean([each.decode_per_s for each in services if each.decode_per_s]),
        busy=rate / len(ready) if rate and ready else None,
    )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _largest(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
