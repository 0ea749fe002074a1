"""Counts of a simulated run: times to the first token, refusals, tokens that came. Knows no policy."""

from collections import deque
from math import log10

from axon.domain.scaling.intake import Taken
from axon.domain.scaling.lengths import Lengths
from axon.domain.scaling.work import Work
from benchmarks.scaling.engine_model import EngineModel
from benchmarks.scaling.load import Cohort

_PER_DECADE, _LOWEST = 50, -3
_NUM_BUCKETS = 8 * _PER_DECADE


class Tally:
    """Figures of one run, and of the time since the last look."""

    def __init__(
        self, engine: EngineModel, *, target_s: float, counted_from: float, counted_to: float = float("inf")
    ) -> None:
        self.target_s, self.counted_from, self.counted_to = target_s, counted_from, counted_to
        self.num = self.num_within = self.num_refused = 0
        self.buckets = [0] * _NUM_BUCKETS
        self.lengths = Lengths()
        self.busy_tokens_per_s = 1 / engine.seconds(0.8, 0.2)
        self.since_look = Since()
        self._taken = [0.0, 0.0, 0.0]
        self._means: dict[str, tuple[float, int]] = {}
        self._ttfts: deque[tuple[float, float, int]] = deque()

    def arrived(self, cohort: Cohort) -> None:
        since = self.since_look
        if self.counts(cohort):
            self.num += cohort.weight
        since.num += cohort.weight
        since.prompt += cohort.weight * cohort.prompt

    def counts(self, cohort: Cohort) -> bool:
        """Whether it came in the time that counts. Whoever has no first token at the end of the run is late."""
        return self.counted_from <= cohort.at < self.counted_to

    @property
    def taken(self) -> Taken:
        """What workers would have told of the jobs that they have taken."""
        jobs, prompt, answer = self._taken
        return Taken(jobs=jobs, work=Work(prompt=prompt, answer=answer))

    def took(self, cohort: Cohort) -> None:
        """A cohort got slots."""
        taken = self._taken
        taken[0] += cohort.weight
        taken[1] += cohort.weight * cohort.prompt
        taken[2] += cohort.weight * self._mean(cohort.tenant)

    def _mean(self, tenant: str) -> float:
        """The tenant's mean length, computed anew every hundred answers."""
        mean, left = self._means.get(tenant, (0.0, 0))
        if left <= 0:
            mean, left = self.lengths.mean(tenant), 100
        self._means[tenant] = mean, left - 1
        return mean

    def ttft_p95_s(self, now: float) -> float | None:
        """95th percentile of the last minute's times to the first token; None without any."""
        while self._ttfts and self._ttfts[0][0] < now - 60.0:
            self._ttfts.popleft()
        left = 0.95 * sum(weight for _, _, weight in self._ttfts)
        for ttft_s, weight in sorted((ttft_s, weight) for _, ttft_s, weight in self._ttfts):
            left -= weight
            if left <= 0:
                return ttft_s
        return None

    def refused(self, cohort: Cohort) -> None:
        if self.counts(cohort):
            self.num_refused += cohort.weight
        self.since_look.num_first += cohort.weight

    def first_token(self, cohort: Cohort, ttft_s: float) -> None:
        since = self.since_look
        since.num_first += cohort.weight
        since.ttft_s += cohort.weight * ttft_s
        self._ttfts.append((cohort.at + ttft_s, ttft_s, cohort.weight))
        is_within = ttft_s <= self.target_s
        since.num_within += cohort.weight * is_within
        if self.counts(cohort):
            self.num_within += cohort.weight * is_within
            bucket = int((log10(max(ttft_s, 1e-3)) - _LOWEST) * _PER_DECADE)
            self.buckets[min(_NUM_BUCKETS - 1, bucket)] += cohort.weight

    def ended(self, cohort: Cohort, replicas: int) -> None:
        """Answers of a cohort are whole. Each replica learns lengths from its own part of them."""
        self.since_look.num_ended += cohort.weight
        self.since_look.ended_answer += cohort.weight * cohort.answer
        if cohort.at >= 0:
            self.lengths.observe(cohort.tenant, cohort.answer, cohort.weight / max(1, replicas))

    def percentile(self, share: float) -> float:
        """Time to the first token in seconds that this share does not exceed, to 5 %; infinite for one that never came,
        as for a refused request."""
        seen, total = 0, self.num
        for index, num in enumerate(self.buckets):
            seen += num
            if seen >= share * total and total:
                return float(10 ** (_LOWEST + (index + 1) / _PER_DECADE))
        return float("inf") if total else 0.0


class Since:
    """Sums since the last look."""

    __slots__ = ("ended_answer", "num", "num_ended", "num_first", "num_within", "prompt", "ttft_s")

    def __init__(self) -> None:
        self.num = self.num_first = self.num_within = self.num_ended = 0
        self.prompt = self.ttft_s = self.ended_answer = 0.0
