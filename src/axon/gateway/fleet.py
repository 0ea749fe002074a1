"""A gateway's view of the workers: their deployment, pools and service rate. Knows no queue and no engine."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import structlog

from axon.domain.presence import Presence, service_rate
from axon.domain.served_version import ServedVersion
from axon.errors import AxonError, Unavailable
from axon.ports.live import Presences
from axon.telemetry.metrics import Metrics

_POLL_S = 1.0
"""Interval at which the workers' presences are read."""
_FIRST_POLL_S = 0.2
"""Interval until the first worker has been seen."""
_RETRY_AFTER_S = 2.0
"""Clients are asked to wait this long before a retry while no worker can serve them."""

_logger = structlog.get_logger("axon.gateway")


def served(presences: Sequence[Presence], text: str) -> ServedVersion | None:
    """Returns the deployment whose version most workers serve; draining workers count only if all are draining.

    ``text`` identifies the gateway's tokenizer and template. Workers with others are left out, because the same token
    ids would be another text to them. Returns None if no worker is left. Pure.
    """
    usable = [presence for presence in presences if presence.deployment.text == text]
    if not usable:
        return None
    votes = Counter(presence.deployment.version for presence in usable if not presence.draining)
    votes = votes or Counter(presence.deployment.version for presence in usable)
    # At equal numbers the newer version wins, which is the one being rolled out.
    newest = {
        version: max(each.deployment.created for each in usable if each.deployment.version == version)
        for version in votes
    }
    version = max(votes, key=lambda each: (votes[each], newest[each], each))
    same = [presence.deployment for presence in usable if presence.deployment.version == version]
    return min(same, key=lambda deployment: deployment.created)


class Fleet:
    """Reads the workers' presences; while there are none, or ``live`` is down, it keeps what it last read."""

    def __init__(
        self,
        name: str,
        *,
        text: str,
        presences: Presences,
        learned: Callable[[ServedVersion], None],
        metrics: Metrics,
        deployment: ServedVersion | None = None,
        has_pools: bool = True,
    ) -> None:
        """Stores its parts. ``learned`` is called with each new deployment that the workers serve.

        ``has_pools`` is false in a process whose one worker serves every tenant.
        """
        self.name = name
        self._text, self._presences, self._learned, self._metrics = text, presences, learned, metrics
        self._deployment = deployment
        self._has_pools, self._pools = has_pools, frozenset[str]()
        self._mismatched = False
        self._rates: dict[str, float] = {}
        """Tokens per second that each pool serves when it is busy."""
        self._with_free_slots = frozenset[str]()
        """Pools that have free slots."""

    def tokens_per_s(self, pool: str = "") -> float | None:
        """Returns the tokens per second that a pool serves when it is busy; None if unknown, or if it has free slots.

        The rate is measured only while the pool is busy. If an idle pool had a rate, one that was measured too low
        would shed requests for ever, and the pool would never be busy enough to correct it.
        """
        pool = pool if self._has_pools else ""
        return None if pool in self._with_free_slots else self._rates.get(pool)

    @property
    def known(self) -> bool:
        """Whether a worker has ever been seen."""
        return self._deployment is not None

    @property
    def deployment(self) -> ServedVersion:
        """The deployment that the workers serve; raises ``Unavailable`` until one has been seen."""
        if self._deployment is None:
            raise self.problem()
        return self._deployment

    def pool(self, name: str) -> str:
        """Returns the pool for the turns of a tenant whose terms name this one; raises ``Unavailable`` if it is empty.

        Turns of the shared pool (an empty name) are accepted even while it has no worker, and wait in their lane.
        """
        if not name or not self._has_pools:
            return ""
        if name not in self._pools:
            raise Unavailable(
                f"The pool '{name}', which serves this tenant, has no worker now; try again later.",
                code="pool_unavailable",
                retry_after_s=_RETRY_AFTER_S,
            )
        return name

    def problem(self) -> Unavailable:
        """Returns the error that says why no deployment is known yet."""
        if self._mismatched:
            return Unavailable(
                f"The workers of '{self.name}' have another tokenizer or template than this gateway; "
                "start both with the same model.",
                code="model_mismatch",
                retry_after_s=_RETRY_AFTER_S,
            )
        return Unavailable(
            f"No worker of '{self.name}' has been seen yet; requests are accepted as soon as one starts.",
            code="no_worker",
            retry_after_s=_RETRY_AFTER_S,
        )

    def learn(self, presences: Sequence[Presence]) -> None:
        """Updates deployment, pools, rates and metrics from the presences; without any, the deployment stays known."""
        staying = [presence for presence in presences if not presence.draining]
        self._metrics.workers.labels(self.name).set(len(staying))
        self._metrics.free_slots.labels(self.name).set(sum(presence.load.free_slots for presence in staying))
        self._pools = frozenset(presence.pool for presence in staying)
        self._rate(presences)
        found = served(presences, self._text)
        if found is None:
            if presences and not self._mismatched:
                hint = "start workers and gateway with the same model"
                _logger.error("fleet.model_mismatch", model=self.name, text=self._text, hint=hint)
            self._mismatched = bool(presences)
            return
        self._mismatched = False
        if self._deployment is not None and self._deployment.version == found.version:
            found = replace(found, created=self._deployment.created)
        if found != self._deployment:
            _logger.info("fleet.deployment", model=found.name, version=found.version, workers=len(staying))
            self._deployment = found
            self._learned(found)

    def _rate(self, presences: Sequence[Presence]) -> None:
        """Updates each pool's service rate and free slots; a pool without a new rate keeps its last one."""
        staying = [presence for presence in presences if not presence.draining]
        self._with_free_slots = frozenset(presence.pool for presence in staying if presence.load.free_slots)
        for pool in {presence.pool for presence in presences}:
            rate = service_rate([presence for presence in presences if presence.pool == pool])
            if rate is not None:
                self._rates[pool] = rate

    async def watch(self) -> None:
        """Updates only the service rates, until cancelled: for a process that has its worker's deployment already."""
        while True:
            with contextlib.suppress(AxonError):
                self._rate(await self._presences.all(self.name))
            await asyncio.sleep(_POLL_S)

    async def run(self) -> None:
        """Reads the presences and updates everything, until cancelled."""
        while True:
            try:
                self.learn(await self._presences.all(self.name))
            except AxonError as error:
                _logger.warning("fleet.not_seen", model=self.name, error=str(error), retry_s=_POLL_S)
            await asyncio.sleep(_POLL_S if self.known else _FIRST_POLL_S)
