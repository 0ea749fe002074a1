"""The policies that are compared: a view of the fleet in, a number of replicas out. Each keeps its own memory.

ours         the autoscaler of axon.domain.scaling
queue        queue length as KEDA scales on it: unfinished jobs over a threshold
concurrency  running sequences per replica as the Horizontal Pod Autoscaler (HPA) scales on them
averages     a planner on averages, as NVIDIA Dynamo's throughput-based one: the last interval's work over profiled
             throughput, with a correction
"""

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from math import ceil
from typing import Protocol

from axon.domain.scaling.decide import decide
from axon.domain.scaling.intake import Intake
from axon.domain.scaling.memory import Memory
from axon.domain.scaling.policy import ScalingPolicy
from axon.domain.scaling.signals import Signals
from axon.domain.scaling.work import Speed, Work
from axon.domain.tenants.tenant import Tier
from benchmarks.scaling.load import Load
from benchmarks.scaling.view import View


class Scaler(Protocol):
    """A policy for one group."""

    interval_s: float

    def look(self, view: View) -> int:
        """The number of replicas that shall run."""
        ...


class Ours:
    """Axon's autoscaler, with its defaults."""

    def __init__(self, load: Load) -> None:
        self.policy = ScalingPolicy(
            min_replicas=0 if load.idle_s else load.least,
            max_replicas=load.most,
            idle_s=load.idle_s,
            ttft_target_s=load.ttft_target_s,
            target_wait_s=load.ttft_target_s,
        )
        self.interval_s = self.policy.look_s
        self.reason = ""
        self._memory, self._intake = Memory(replicas=load.initial), Intake()

    def look(self, view: View) -> int:
        arrived, self._intake = self._intake.look(view.now, view.taken, view.waiting)
        pending = Work(prompt=view.pending_prompt)
        backlog = self._intake.backlog({Tier.DEFAULT: view.waiting}, pending=pending)
        signals = replace(signals_of(view), arrived=arrived, backlog=backlog)
        decision = decide(self.policy, signals, self._memory, view.now)
        self._memory, self.reason = decision.memory, decision.reason
        return decision.replicas


def signals_of(view: View) -> Signals:
    """What control has of a view: the same figures that workers tell."""
    engine = view.engine
    slots = view.ready * engine.slots
    return Signals(
        ready=view.ready,
        starting=view.starting,
        starting_age_s=view.starting_age_s,
        slots=engine.slots,
        demand=view.waiting + view.running,
        idle_s=view.idle_s,
        running=view.running,
        remaining=Work(answer=view.remaining_answer),
        speed=Speed(prefill=view.prefill_per_s, decode=view.decode_per_s),
        cold_start_s=view.cold_start_s,
        utilisation=min(1.0, view.running / slots) if slots else None,
        itl_s=view.step_s,
        ttft_s=view.ttft_p95_s,
    )


class _Stabilised:
    """HPA's frame: a tolerance, growth by doubling or four replicas a period, and the largest wish of five minutes on
    the way down. KEDA leaves it to the same HPA."""

    def __init__(self, load: Load, interval_s: float) -> None:
        self.interval_s, self._load = interval_s, load
        self._replicas = load.initial
        self._wishes: deque[tuple[float, int]] = deque()

    def settle(self, view: View, wish: int, ratio: float) -> int:
        present = max(1, self._replicas)
        if abs(ratio - 1.0) <= 0.1 and self._replicas > 0:
            wish = present
        wish = min(wish, max(2 * present, present + 4))
        self._wishes.append((view.now, wish))
        while self._wishes[0][0] <= view.now - 300.0:
            self._wishes.popleft()
        if wish < self._replicas:
            wish = min(self._replicas, max(each for _, each in self._wishes))
        self._replicas = max(self._load.least, min(self._load.most, wish))
        return self._replicas


class QueueLength(_Stabilised):
    """KEDA on a queue's length: jobs that are not acknowledged (its RabbitMQ scaler counts ready and unacked messages)
    over a threshold of half of a replica's slots; a poll every 30 s; to zero after a cooldown of 300 s."""

    def __init__(self, load: Load, part: float = 0.5) -> None:
        super().__init__(load, 30.0)
        self._threshold = part * load.engine.slots
        self._may_be_zero = load.idle_s > 0

    def look(self, view: View) -> int:
        unfinished = view.waiting + view.running
        if self._may_be_zero and unfinished == 0:
            if view.idle_s >= 300.0:
                self._replicas = 0
            return self._replicas
        if self._may_be_zero and self._replicas == 0:
            self._replicas = 1
        ratio = unfinished / self._threshold / max(1, self._replicas)
        return self.settle(view, ceil(unfinished / self._threshold), ratio)


class Concurrency(_Stabilised):
    """HPA on running sequences per ready replica, with a target of 80 % of the slots; a sync every 15 s. It has no way
    to zero."""

    def __init__(self, load: Load, part: float = 0.8) -> None:
        super().__init__(load, 15.0)
        self._target = part * load.engine.slots
        if load.idle_s:
            self._replicas = max(1, load.initial)

    def look(self, view: View) -> int:
        if not view.ready:
            return max(1, self._replicas)
        ratio = view.running / view.ready / self._target
        # Replicas that are not ready count as idle on the way up: the HPA's own damping.
        if ratio > 1.0:
            ratio = max(1.0, view.running / (view.ready + view.starting) / self._target)
        return max(1, self.settle(view, ceil((view.ready + view.starting) * ratio), ratio))


class Averages:
    """A planner on averages: every 180 s the last interval's requests, prompt and answer lengths over the throughput at
    which a profiled replica meets its targets (90 % of the largest), times measured over expected step time."""

    interval_s = 180.0

    def __init__(self, load: Load, part: float = 0.9) -> None:
        self._load, self._part = load, part
        self._replicas = max(1, load.initial)

    def look(self, view: View) -> int:
        engine, since = view.engine, view.since
        if since.num == 0:
            return max(self._load.least, 1)
        answer = since.ended_answer / since.num_ended if since.num_ended else 250.0
        work = (since.prompt / view.prefill_per_s + since.num * answer / view.decode_per_s) / view.since_s
        full_s = engine.fixed_s + engine.slots * engine.stream_s
        correction = max(1.0, view.step_s / (full_s + engine.prompt_s * engine.chunk))
        self._replicas = max(1, min(self._load.most, ceil(work / self._part * correction)))
        return max(self._load.least, self._replicas)


class Schedule:
    """Replicas by a plan that was made before: (time at which to order, replicas)."""

    interval_s = 1e9

    def __init__(self, plan: list[tuple[float, int]]) -> None:
        self.plan = plan

    def look(self, view: View) -> int:
        raise AssertionError("a schedule does not look")


POLICIES: dict[str, Callable[[Load], Scaler]] = {
    "ours": Ours,
    "queue": QueueLength,
    "concurrency": Concurrency,
    "averages": Averages,
}
