"""Counts of a simulated run: times to the first token, refusals, tokens that came. Knows no policy."""

from math import log10

from axon.domain.scaling.lengths import Lengths
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

    def arrived(self, cohort: Cohort) -> None:
        since = self.since_look
        if self.counts(cohort):
            self.num += cohort.weight
        since.num += cohort.weight
        since.prompt += cohort.weight * cohort.prompt
        since.by_tenant[cohort.tenant] = since.by_tenant.get(cohort.tenant, 0) + cohort.weight

    def counts(self, cohort: Cohort) -> bool:
        """Whether it came in the time that counts. Whoever has no first token at the end of the run is late."""
        return self.counted_from <= cohort.at < self.counted_to

    def expected_answer(self) -> float:
        """Tokens of the answers to what came since the last look, by each tenant's own lengths."""
        by_tenant = self.since_look.by_tenant
        return sum(num * self.lengths.mean(tenant) for tenant, num in by_tenant.items())

    def refused(self, cohort: Cohort) -> None:
        if self.counts(cohort):
            self.num_refused += cohort.weight
        self.since_look.num_first += cohort.weight

    def first_token(self, cohort: Cohort, ttft_s: float) -> None:
        since = self.since_look
        since.num_first += cohort.weight
        since.ttft_s += cohort.weight * ttft_s
        is_within = ttft_s <= self.target_s
        since.num_within += cohort.weight * is_within
        if self.counts(cohort):
            self.num_within += cohort.weight * is_within
            bucket = int((log10(max(ttft_s, 1e-3)) - _LOWEST) * _PER_DECADE)
            self.buckets[min(_NUM_BUCKETS - 1, bucket)] += cohort.weight

    def ended(self, cohort: Cohort) -> None:
        self.since_look.num_ended += cohort.weight
        self.since_look.ended_answer += cohort.weight * cohort.answer
        if cohort.at >= 0:
            self.lengths.observe(cohort.tenant, cohort.answer, cohort.weight)

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

    __slots__ = ("by_tenant", "ended_answer", "num", "num_ended", "num_first", "num_within", "prompt", "ttft_s")

    def __init__(self) -> None:
        self.num = self.num_first = self.num_within = self.num_ended = 0
        self.prompt = self.ttft_s = self.ended_answer = 0.0
        self.by_tenant: dict[str, int] = {}
