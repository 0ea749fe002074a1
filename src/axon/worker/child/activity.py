"""Counts what a worker does, for people who watch: tokens of each tenant, and latencies by bucket. No I/O, no clock."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

from axon.domain.histogram import BOUNDS, bucket_of, trimmed
from axon.domain.presence import Activity, GpuUse, TenantActivity

MAX_TENANTS = 16
"""Tenants that an announcement has at most."""
_MAX_COUNTED = 256
"""Tenants that are counted at most; beyond that, the one served longest ago is forgotten."""
_MAX_GPUS = 16


class Gpu(Protocol):
    """A GPU as the engine reports it."""

    @property
    def index(self) -> int: ...
    @property
    def utilization(self) -> float: ...
    @property
    def memory_bytes(self) -> int: ...


class ActivityCounts:
    """``token`` for every token, ``began`` for every first one, ``step`` for every step, ``told`` once a second."""

    def __init__(self) -> None:
        self._tokens: dict[str, tuple[int, int]] = {}
        """Prompt and answer tokens of each tenant, the one served last at the end."""
        self._ttfts, self._gaps = [0] * (len(BOUNDS) + 1), [0] * (len(BOUNDS) + 1)
        self._num_first = 0
        """First tokens since the last step: no gap comes before them."""
        self._emitted_at: float | None = None
        """Time of the last step that gave tokens, if the engine has had work ever since."""
        self._gpus: tuple[GpuUse, ...] = ()

    def token(self, tenant: str, *, prompt: int = 0, answer: int = 1) -> None:
        """Counts what a tenant was served."""
        had = self._tokens.pop(tenant, (0, 0))
        self._tokens[tenant] = (had[0] + prompt, had[1] + answer)
        if len(self._tokens) > _MAX_COUNTED:
            del self._tokens[next(iter(self._tokens))]

    def began(self, ttft_s: float) -> None:
        """A choice has had its first token so long after it was asked."""
        self._ttfts[bucket_of(ttft_s)] += 1
        self._num_first += 1

    def step(self, now: float, *, num_tokens: int, has_work: bool) -> None:
        """A step ended that gave so many tokens; ``has_work``: another step follows at once."""
        num_gaps, self._num_first = num_tokens - self._num_first, 0
        if num_gaps > 0 and self._emitted_at is not None:
            self._gaps[bucket_of(now - self._emitted_at)] += num_gaps
        if not has_work:
            self._emitted_at = None
        elif num_tokens:
            self._emitted_at = now

    def saw_gpus(self, gpus: Sequence[Gpu]) -> None:
        """The engine's GPUs as it last read them."""
        if not gpus and not self._gpus:
            return
        self._gpus = tuple(
            GpuUse(index=each.index, utilization=each.utilization, memory_bytes=each.memory_bytes)
            for each in gpus[:_MAX_GPUS]
        )

    def told(self, running: Iterable[tuple[str, int]] = ()) -> Activity:
        """The counts as an announcement has them; ``running`` has the tenant and the choices of each job that runs."""
        choices: Counter[str] = Counter()
        for tenant, num in running:
            choices[tenant] += num
        lately = [*choices, *(each for each in reversed(self._tokens) if each not in choices)]
        lately.sort(key=lambda tenant: -choices[tenant])  # stable: the one served last stays first
        return Activity(
            running=choices.total(),
            ttft_counts=trimmed(self._ttfts),
            gap_counts=trimmed(self._gaps),
            tenants=tuple(self._of(tenant, choices[tenant]) for tenant in lately[:MAX_TENANTS]),
            gpus=self._gpus,
        )

    def _of(self, tenant: str, running: int) -> TenantActivity:
        prompt, answer = self._tokens.get(tenant, (0, 0))
        return TenantActivity(tenant=tenant, running=running, prompt_tokens=prompt, answer_tokens=answer)
