"""Targets by the autoscaler: reads what workers tell of their service and what waits, and asks the pure decision.

What came in is what was served and what the backlog grew by, so nobody has to count requests at the gateways.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from axon.domain.fleet.desired import Idle, Wanted, least, wanted
from axon.domain.fleet.replica import Group, LaunchState
from axon.domain.fleet.sight import Sight, Target
from axon.domain.presence import Presence, Service, service_rate
from axon.domain.scaling.decide import decide
from axon.domain.scaling.memory import Memory
from axon.domain.scaling.policy import ScalingPolicy
from axon.domain.scaling.signals import Signals
from axon.domain.scaling.work import Speed, Work
from axon.domain.tenant import Tier
from axon.errors import AxonError
from axon.registry.cold_starts import ColdStarts
from axon.runtime.clock import Clock

_SPAN_S = 10.0
"""Seconds that arrivals are averaged over."""
_FIRST_JOB = Work(prompt=200.0, answer=200.0)
"""The work of a job while none has been served."""


@dataclass(slots=True)
class _Watched:
    """What is remembered of a group between looks."""

    memory: Memory = field(default_factory=Memory)
    seen: dict[str, Service] = field(default_factory=dict)
    """By incarnation: what each worker had told when it was last seen."""
    jobs: int = 0
    served: Work = field(default_factory=Work)
    """Everything that was served since this leader began to watch."""
    samples: deque[tuple[float, Work, int]] = field(default_factory=lambda: deque(maxlen=256))
    """Monotonic time, all that was served by then, and the jobs that waited."""
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
        floors, self._idle = least(sight, self._idle, now=now)
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
        _watch(watched, presences, demand.waiting or 0 if demand else 0, now)
        if sight.presences is None or demand is None or not floor.count:
            return floor  # nothing is known, or nobody asks: no reason to have more
        if now - watched.decided_at < self._policy.look_s and watched.target is not None:
            return watched.target if watched.target.count >= floor.count else floor
        deployment = of.deployment
        policy = replace(
            self._policy,
            min_replicas=floor.count,
            max_replicas=max(floor.count, deployment.max_replicas),
            hot=deployment.hot,
        )
        waiting, unfinished = demand.waiting or 0, demand.unfinished or 0
        signals = replace(
            _signals(sight, group, watched, presences, waiting, now),
            demand=max(waiting, unfinished),
            cold_start_s=await self._cold_start_s(of.spec.version),
        )
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


def _watch(watched: _Watched, presences: Sequence[Presence], waiting: int, now: float) -> None:
    """Adds what the workers have served since the last look. Runs of workers that are gone keep what they told."""
    for each in presences:
        told, before = each.load.service, watched.seen.get(each.incarnation, Service())
        watched.served += Work(
            prompt=max(0, told.prompt_tokens - before.prompt_tokens),
            answer=max(0, told.answer_tokens - before.answer_tokens),
        )
        watched.jobs += max(0, told.jobs - before.jobs)
    watched.seen = {each.incarnation: each.load.service for each in presences}
    watched.samples.append((now, watched.served, waiting))
    while len(watched.samples) > 2 and now - watched.samples[1][0] >= _SPAN_S:
        watched.samples.popleft()


def _signals(
    sight: Sight, group: Group, watched: _Watched, presences: Sequence[Presence], waiting: int, now: float
) -> Signals:
    ready = [each for each in presences if not each.draining]
    launched = [each for each in sight.launched or () if each.name.group == group]
    serving = [each for each in launched if each.state in (LaunchState.STARTING, LaunchState.RUNNING)]
    used = sum(each.load.slots - each.load.free_slots for each in ready)
    slots = sum(each.load.slots for each in ready)
    services = [each.load.service for each in ready]
    job = _mean_job(watched)
    rate = service_rate(ready)
    return Signals(
        ready=len(ready),
        starting=max(0, len(serving) - len(presences)),
        draining=len(presences) - len(ready),
        slots=slots / len(ready) if ready else 0.0,
        arrived=_arrived(watched, job),
        backlog={Tier.DEFAULT: _times(job, waiting)} if waiting else {},
        running=float(used),
        remaining=_times(replace(job, prompt=0.0), used / 2),
        speed=Speed(busy=rate / len(ready) if rate and ready else None),
        utilisation=used / slots if slots else None,
        kv_use=_largest([each.kv_use for each in services]),
        ttft_s=_largest([each.ttft_s for each in services]),
        itl_s=_largest([each.itl_s for each in services]),
    )


def _arrived(watched: _Watched, job: Work) -> Work:
    """Work per second that came during the last seconds: what was served, and what more waits."""
    (first_at, first, first_waiting), (last_at, last, last_waiting) = watched.samples[0], watched.samples[-1]
    span_s = last_at - first_at
    if span_s <= 0:
        return Work()
    grown = _times(job, last_waiting - first_waiting)
    return Work(
        prompt=max(0.0, last.prompt - first.prompt + grown.prompt) / span_s,
        answer=max(0.0, last.answer - first.answer + grown.answer) / span_s,
    )


def _mean_job(watched: _Watched) -> Work:
    if not watched.jobs:
        return _FIRST_JOB
    return _times(watched.served, 1 / watched.jobs)


def _times(work: Work, number: float) -> Work:
    return Work(prompt=work.prompt * number, answer=work.answer * number)


def _largest(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
