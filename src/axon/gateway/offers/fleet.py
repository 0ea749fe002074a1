"""A gateway's view of one deployment's workers: who serves which version, pools, service rates. Knows no queue and no
engine."""

from collections.abc import Callable, Sequence

import structlog

from axon.domain.presence import Presence, service_rate
from axon.errors import AxonError, Unavailable
from axon.ports.live import Presences
from axon.runtime.clock import Clock
from axon.telemetry.metrics import Metrics
from axon.telemetry.vllm_report import VllmNames

_RETRY_AFTER_S = 2.0
"""Clients are asked to wait this long before a retry while no worker can serve them."""

_logger = structlog.get_logger("axon.gateway")


class Fleet:
    """Reads the workers' presences; while there are none, or ``live`` is down, it keeps what it last read."""

    def __init__(
        self, name: str, *, presences: Presences, clock: Clock, metrics: Metrics, has_pools: bool = True
    ) -> None:
        """``has_pools`` is false in a process whose one worker of a model serves every tenant."""
        self.name = name
        self._presences, self._clock, self._metrics = presences, clock, metrics
        self._has_pools, self._pools = has_pools, frozenset[str]()
        self._served = frozenset[tuple[str, str]]()
        """Pool and version of each worker that stays, at the last reading."""
        self._began, self._seen = clock.monotonic(), dict[str, float]()
        """Monotonic times at which the view began, and at which each version was last seen with a worker."""
        self._present = frozenset[str]()
        """Versions that had a worker at the last reading."""
        self._rates: dict[str, float] = {}
        """Tokens per second that each pool serves when it is busy."""
        self._with_free_slots = frozenset[str]()
        """Pools that have free slots."""
        self.presences: tuple[Presence, ...] = ()
        """The workers as they were last read."""
        self.on_learned: list[Callable[[Sequence[Presence]], None]] = []
        """Called with the presences of each reading."""

    def tokens_per_s(self, pool: str = "") -> float | None:
        """Returns the tokens per second that a pool serves when it is busy; None if unknown, or if it has free slots or
        no worker.

        The rate is measured only while the pool is busy. If an idle pool had a rate, one that was measured too low
        would shed requests for ever, and the pool would never be busy enough to correct it. A pool without a worker
        refuses nobody by a rate: what it is asked waits until one starts.
        """
        pool = self.pool_of(pool)
        return self._rates.get(pool) if pool in self.full_pools else None

    @property
    def full_pools(self) -> frozenset[str]:
        """Pools that have workers, and no free slot, at the last reading."""
        return self._pools - self._with_free_slots

    def last_tokens_per_s(self, pool: str = "") -> float | None:
        """The rate that a pool had when it was last busy, whether or not it has workers now; None if it never was."""
        return self._rates.get(self.pool_of(pool))

    def absent_s(self, version: str) -> float:
        """Seconds for which the version has had no worker that stays; 0 while it has one."""
        return self._clock.monotonic() - self._seen.get(version, self._began) if version not in self._present else 0.0

    @property
    def versions(self) -> frozenset[str]:
        """The versions that had a worker at the last reading."""
        return self._present

    def has(self, version: str, pool: str = "") -> bool:
        """Whether the version had a worker in the pool at the last reading."""
        return (self.pool_of(pool), version) in self._served

    def has_pool(self, name: str) -> bool:
        """Whether turns of a tenant whose terms name this pool find a worker there; those of the shared one wait."""
        pool = self.pool_of(name)
        return not pool or pool in self._pools

    def pool_of(self, name: str) -> str:
        """Returns the pool for the turns of a tenant whose terms name this one, whether or not it has a worker."""
        return name if self._has_pools else ""

    def pool(self, name: str) -> str:
        """Returns the pool for the turns of a tenant whose terms name this one; raises ``Unavailable`` if it is empty.

        Turns of the shared pool (an empty name) are accepted even while it has no worker, and wait in their lane.
        """
        name = self.pool_of(name)
        if not self.has_pool(name):
            raise Unavailable(
                f"The pool '{name}', which serves this tenant, has no worker now; try again later.",
                code="pool_unavailable",
                retry_after_s=_RETRY_AFTER_S,
            )
        return name

    def no_worker(self) -> Unavailable:
        """Returns the error that says that no worker has been seen."""
        return Unavailable(
            f"No worker of '{self.name}' has been seen yet; requests are accepted as soon as one starts.",
            code="no_worker",
            retry_after_s=_RETRY_AFTER_S,
        )

    def mismatch(self) -> Unavailable:
        """Returns the error that says that the workers have another tokenizer than this gateway."""
        return Unavailable(
            f"The workers of '{self.name}' have another tokenizer or template than this gateway; "
            "start both with the same model.",
            code="model_mismatch",
            retry_after_s=_RETRY_AFTER_S,
        )

    def learn(self, presences: Sequence[Presence]) -> None:
        """Updates versions, pools, rates and metrics from the presences."""
        self.presences = tuple(presences)
        staying = [presence for presence in presences if not presence.draining]
        self._metrics.fleet.workers.labels(self.name).set(len(staying))
        self._metrics.fleet.free_slots.labels(self.name).set(sum(presence.load.free_slots for presence in staying))
        if self._metrics.vllm is not None:
            self._show_to_scorers(self._metrics.vllm, staying)
        self._pools = frozenset(presence.pool for presence in staying)
        self._served = frozenset((presence.pool, presence.deployment.version) for presence in staying)
        self._present = frozenset(presence.deployment.version for presence in staying)
        self._seen |= dict.fromkeys(self._present, self._clock.monotonic())
        self._rate(presences)
        for learned in self.on_learned:
            learned(presences)

    def hide(self) -> None:
        """Shows the deployment in no metric any more: it was removed, and has no worker because it needs none."""
        shown = (self._metrics.fleet.workers, self._metrics.fleet.free_slots, self._metrics.turns.waiting)
        for gauge in shown:
            gauge.remove(self.name)
        if self._metrics.vllm is not None:
            self._metrics.vllm.hide_fleet(self.name)

    def _show_to_scorers(self, names: VllmNames, staying: Sequence[Presence]) -> None:
        num_running = sum(presence.load.slots - presence.load.free_slots for presence in staying)
        used = [use for presence in staying if (use := presence.load.service.kv_use) is not None]
        names.fleet(self.name, num_running=num_running, kv_usage=sum(used) / len(used) if used else 0.0)

    def _rate(self, presences: Sequence[Presence]) -> None:
        """Updates each pool's service rate and free slots; a pool without a new rate keeps its last one."""
        staying = [presence for presence in presences if not presence.draining]
        self._with_free_slots = frozenset(presence.pool for presence in staying if presence.load.free_slots)
        for pool in {presence.pool for presence in presences}:
            rate = service_rate([presence for presence in presences if presence.pool == pool])
            if rate is not None:
                self._rates[pool] = rate

    async def look(self) -> None:
        """Reads the presences once and updates everything."""
        try:
            presences = await self._presences.all(self.name)
        except AxonError as error:
            _logger.warning("fleet.not_seen", model=self.name, error=str(error))
            return
        self.learn(presences)
