"""Loads: arrivals of requests over time, the same for every policy, by a seed. Knows no replica.

An arrival is a cohort: several requests that are alike and come at once. A small load has cohorts of one request each;
a large one has cohorts that grow, so that a fleet of 10,000 replicas costs no more time to simulate than one of ten.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import NamedTuple

from benchmarks.scaling.engine_model import H200_8B, EngineModel

_NORMAL = NormalDist()
_TENANTS = tuple(f"tenant-{number}" for number in range(16))


class Cohort(NamedTuple):
    """Requests that are alike."""

    at: float
    """Seconds at which they come; negative for sequences that were handed over, whose first token is long out."""
    prompt: float
    answer: float
    weight: int
    """How many they are."""
    tenant: str
    turns: int = 0
    """Turns that follow in the same loop, each after a pause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Prompt and answer lengths in tokens: log-normal, or with a Pareto tail."""

    prompt_mean: float = 1000.0
    prompt_sigma: float = 0.8
    answer_mean: float = 250.0
    answer_sigma: float = 0.7
    answer_tail: float = 0.0
    """Exponent of the Pareto distribution of answers in place of the log-normal one; 0 for the log-normal."""
    prompt_most: float = 30_000.0
    answer_most: float = 8_000.0

    def draw(self, first: float, second: float) -> tuple[float, float]:
        """A prompt and an answer from two uniform numbers in (0, 1)."""
        prompt = self.prompt_mean * math.exp(self.prompt_sigma * _normal(first) - self.prompt_sigma**2 / 2)
        if self.answer_tail:
            least = self.answer_mean * (self.answer_tail - 1) / self.answer_tail
            answer = least * (1 - second) ** (-1 / self.answer_tail)
        else:
            answer = self.answer_mean * math.exp(self.answer_sigma * _normal(second) - self.answer_sigma**2 / 2)
        return max(1.0, min(self.prompt_most, prompt)), max(1.0, min(self.answer_most, answer))


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One scenario."""

    name: str
    seconds: float
    erlangs: Callable[[float], float]
    """Busy replicas that the arrivals keep, at each second."""
    lengths: Lengths = field(default_factory=Lengths)
    engine: EngineModel = H200_8B
    seed: int = 7
    slice_s: float = 0.5
    cohorts: int = 8
    """Most cohorts in a slice; fewer requests than that come one by one."""
    tenants: int = 4
    loop_turns: int = 0
    """Turns of an agent's loop after its first one; each adds what the tool said to a prompt that is cached."""
    pause_s: float = 5.0
    """Mean time between the end of an answer and the loop's next turn."""
    cold_start_s: float = 30.0
    ttft_target_s: float = 2.0
    warm_up_s: float = 900.0
    """Seconds at the start that do not count."""
    initial: int = 1
    """Replicas that are ready at the start."""
    least: int = 1
    most: int = 400
    idle_s: float = 0.0
    """Seconds without a request after which a policy may go to zero; 0 for never."""
    pace_per_s: float = 8.0
    """Replicas that the reconciler starts or stops per second."""
    copies: int = 1
    """Deployments with this load, each with a seed of its own."""

    def deployments(self) -> list["Load"]:
        """The load of each deployment, with a seed of its own."""
        return [replace(self, copies=1, seed=self.seed + copy) for copy in range(self.copies)]

    def arrivals(self) -> list[Cohort]:
        """All arrivals, in order; the same for the same seed."""
        generator = random.Random(f"{self.name} {self.seed}")
        mean_s = self.mean_seconds() * (1 + self.loop_turns)
        found: list[Cohort] = []
        for index in range(int(self.seconds / self.slice_s)):
            start = index * self.slice_s
            rate = self.erlangs(start) / mean_s
            found += self._slice(generator, start, _poisson(generator, rate * self.slice_s))
        return sorted(found)

    def _slice(self, generator: random.Random, start: float, num: int) -> list[Cohort]:
        """The requests of a slice, in at most so many cohorts; lengths are stratified over them."""
        parts = min(num, self.cohorts)
        if parts == 0:
            return []
        order = generator.sample(range(parts), parts)
        found = []
        for part in range(parts):
            weight = num // parts + (part < num % parts)
            first = (part + generator.random()) / parts
            second = (order[part] + generator.random()) / parts
            prompt, answer = self.lengths.draw(min(1 - 1e-9, max(1e-9, first)), min(1 - 1e-9, max(1e-9, second)))
            at = start + self.slice_s * generator.random()
            found.append(
                Cohort(at, prompt, answer, weight, _TENANTS[generator.randrange(self.tenants)], self.loop_turns)
            )
        return found

    def mean_seconds(self) -> float:
        """Mean seconds of a busy replica for one request, over its lengths."""
        points = [(index + 0.5) / 200 for index in range(200)]
        prompts = [self.lengths.draw(point, 0.5)[0] for point in points]
        answers = [self.lengths.draw(0.5, point)[1] for point in points]
        return self.engine.seconds(sum(prompts) / 200, sum(answers) / 200)


def _normal(uniform: float) -> float:
    """The inverse of the normal distribution."""
    return _NORMAL.inv_cdf(uniform)


def _poisson(generator: random.Random, mean: float) -> int:
    """A Poisson number: exact where it is small, by the normal distribution where it is large."""
    if mean > 500:
        return max(0, round(generator.gauss(mean, math.sqrt(mean))))
    limit, product, num = math.exp(-mean), generator.random(), 0
    while product > limit:
        product *= generator.random()
        num += 1
    return num
