"""Targets by the autoscaler: reads what workers tell of their service and what waits, and asks the pure decision."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from axon.domain.fleet.desired import Idle, Wanted, least, wanted
from axon.domain.fleet.replica import Group, LaunchState
from axon.domain.fleet.sight import Sight, Target
from axon.domain.presence import Presence, Service, service_rate
from axon.domain.registry.deployment import Deployment
from axon.domain.scaling.decide import decide
from axon.domain.scaling.intake import Begun, Intake
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
_MOST_SEEN = 20_000
"""Runs of workers whose counts are remembered for each group."""


@dataclass(slots=True)
class _Watched:
    """What is remembered of a group between looks."""

    memory: Memory = field(default_factory=Memory)
    intake: Intake = field(default_factory=Intake)
    seen: dict[str, Begun] = field(default_factory=dict)
    """By incarnation: what each worker had told when it was last seen, those seen last at the end."""
    begun: Begun = field(default_factory=Begun)
    """Everything that has begun since this leader watches."""
    target: Target | None = None
    decided_at: float = float("-inf")


class ScaledTargets:
    """A ``Targets`` of one reign of a leader."""

    def __init__(self, policy: ScalingPolicy, cold_starts: ColdStarts, clock: Clock) -> None:
        """``policy`` has what all deployments share; bounds and idle times are the deployments' own."""
        self._policy, self._cold_starts, self._clock = policy, cold_starts, clock
        self._idle = Idle()
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
        _watch(watched, presences)
        if not floor.count:  # nobody asks: no reason to have more
            watched.target, watched.memory = None, replace(watched.memory, replicas=0)
            return floor
        held = watched.target if watched.target is not None and watched.target.count >= floor.count else floor
        if sight.presences is None or demand is None or now - watched.decided_at < self._policy.look_s:
            return held
        waiting, unfinished = demand.waiting or 0, demand.unfinished or 0
        arrived, watched.intake = watched.intake.look(now, watched.begun, waiting)
        signals = replace(
            _signals(sight, group, presences, self._clock.now()),
            arrived=arrived,
            backlog=watched.intake.backlog(demand.waiting_by_tier),
            demand=max(waiting, unfinished),
            cold_start_s=await self._cold_start_s(of.spec.version),
        )
        policy = _policy(self._policy, of.deployment, floor.count)
        decision = decide(policy, signals, watched.memory, self._clock.now())
        watched.memory, watched.decided_at = decision.memory, now
        reason = decision.reason if decision.replicas > floor.count else floor.reason
        watched.target = Target(max(floor.count, decision.replicas), reason, most=max(floor.count, policy.most))
        return watched.target

    async def _cold_start_s(self, version: str) -> float | None:
        try:
            measured = await self._cold_starts.of(version)
        except AxonError:
            return None
        return measured.seconds if measured else None


def _policy(shared: ScalingPolicy, deployment: Deployment, least_count: int) -> ScalingPolicy:
    """The policy of one of the deployment's groups: its own targets, where it has some, over those of all."""
    own = deployment.scaling
    targets: dict[str, float] = {name: getattr(own, name) for name in _OWN_TARGETS if getattr(own, name) > 0}
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
    """Adds what has begun at the workers since the last look. A run that was not seen before counts from now on: its
    presence may only have been lost, and all that it ever served would look like a crowd."""
    jobs, work = watched.begun.jobs, watched.begun.work
    for each in presences:
        told = _begun(each.load.service)
        before = watched.seen.pop(each.incarnation, told)
        jobs += max(0.0, told.jobs - before.jobs)
        work += Work(
            prompt=max(0.0, told.work.prompt - before.work.prompt),
            answer=max(0.0, told.work.answer - before.work.answer),
        )
        watched.seen[each.incarnation] = told
    while len(watched.seen) > _MOST_SEEN:
        del watched.seen[next(iter(watched.seen))]
    watched.begun = Begun(jobs=jobs, work=work)


def _begun(told: Service) -> Begun:
    """What a worker has begun. One of the release before predicts nothing: what it has answered counts."""
    answer = told.expected_tokens or told.answer_tokens
    return Begun(jobs=told.jobs, work=Work(prompt=told.prompt_tokens, answer=answer))


def _signals(sight: Sight, group: Group, presences: Sequence[Presence], at: float) -> Signals:
    """What is told of the group's workers at a Unix time."""
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
