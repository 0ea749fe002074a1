"""What a gateway knows of the workers: what they serve, as they last said themselves. Knows no queue and no engine."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import structlog

from axon.domain.deployment import Deployment
from axon.domain.presence import Presence, service_rate
from axon.errors import AxonError, Unavailable
from axon.ports.live import Presences
from axon.telemetry.metrics import Metrics

_LOOK_S = 1.0
_FIRST_LOOK_S = 0.2
"""How often it looks until it has seen the first worker."""
_RETRY_S = 2.0

_logger = structlog.get_logger("axon.gateway")


def served(presences: Sequence[Presence], text: str) -> Deployment | None:
    """What to ask the workers for: the version that most of them have, those that stay counted first.

    Only of workers whose tokenizer and template are the gateway's own: other ids would be another text to them.
    """
    usable = [presence for presence in presences if presence.deployment.text == text]
    if not usable:
        return None
    votes = Counter(presence.deployment.version for presence in usable if not presence.draining)
    votes = votes or Counter(presence.deployment.version for presence in usable)
    # Equally many: the younger one, which is on its way in.
    newest = {
        version: max(each.deployment.created for each in usable if each.deployment.version == version)
        for version in votes
    }
    version = max(votes, key=lambda each: (votes[each], newest[each], each))
    same = [presence.deployment for presence in usable if presence.deployment.version == version]
    return min(same, key=lambda deployment: deployment.created)


class Fleet:
    """Goes on with what it last knew while the workers, or the service that carries their words, are away."""

    def __init__(
        self,
        name: str,
        *,
        text: str,
        presences: Presences,
        learned: Callable[[Deployment], None],
        metrics: Metrics,
        deployment: Deployment | None = None,
        has_pools: bool = True,
    ) -> None:
        """``has_pools`` unless one worker serves everybody, in this process."""
        self.name = name
        self._text, self._presences, self._learned, self._metrics = text, presences, learned, metrics
        self._deployment = deployment
        self._has_pools, self._pools = has_pools, frozenset[str]()
        self._mismatched = False
        self._rates: dict[str, float] = {}
        self._with_room = frozenset[str]()
        """Pools that have free slots."""

    def tokens_per_s(self, pool: str = "") -> float | None:
        """What the workers of a pool serve when they are busy; None while nobody knows, or while they are not.

        Else a rate that came out too low would keep requests away for ever: it is learned only while they are busy.
        """
        pool = pool if self._has_pools else ""
        return None if pool in self._with_room else self._rates.get(pool)

    @property
    def known(self) -> bool:
        """Whether a worker has ever been seen."""
        return self._deployment is not None

    @property
    def deployment(self) -> Deployment:
        """What the workers serve; raises ``Unavailable`` until one has been seen."""
        if self._deployment is None:
            raise self.problem()
        return self._deployment

    def pool(self, name: str) -> str:
        """The pool that is to run what a tenant of this one asks; raises ``Unavailable`` where nobody works for it.

        Turns of the pool that everybody shares wait while no worker is there: its lanes are taken from sooner or later.
        """
        if not name or not self._has_pools:
            return ""
        if name not in self._pools:
            raise Unavailable(
                f"No worker of the pool '{name}' that serves this tenant is there now.",
                code="pool_unavailable",
                retry_after_s=_RETRY_S,
            )
        return name

    def problem(self) -> Unavailable:
        """Why it cannot be asked for anything yet."""
        if self._mismatched:
            return Unavailable(
                f"The workers of '{self.name}' have another tokenizer or template than this gateway: "
                "give both the same model.",
                code="model_mismatch",
                retry_after_s=_RETRY_S,
            )
        return Unavailable(
            f"No worker of '{self.name}' has been seen yet; requests are taken as soon as one is there.",
            code="no_worker",
            retry_after_s=_RETRY_S,
        )

    def learn(self, presences: Sequence[Presence]) -> None:
        """Takes over what the workers say; where nobody says anything, what was known stays."""
        staying = [presence for presence in presences if not presence.draining]
        self._metrics.workers.set(len(staying))
        self._metrics.free_slots.set(sum(presence.load.free_slots for presence in staying))
        self._pools = frozenset(presence.pool for presence in staying)
        self._rate(presences)
        found = served(presences, self._text)
        if found is None:
            if presences and not self._mismatched:
                _logger.error("fleet.model_mismatch", model=self.name, text=self._text)
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
        """What each pool serves; while nobody says anything, what was known stays."""
        staying = [presence for presence in presences if not presence.draining]
        self._with_room = frozenset(presence.pool for presence in staying if presence.load.free_slots)
        for pool in {presence.pool for presence in presences}:
            rate = service_rate([presence for presence in presences if presence.pool == pool])
            if rate is not None:
                self._rates[pool] = rate

    async def watch(self) -> None:
        """Looks at how much the workers serve, and at nothing else, until cancelled: for who knows the rest."""
        while True:
            with contextlib.suppress(AxonError):
                self._rate(await self._presences.all(self.name))
            await asyncio.sleep(_LOOK_S)

    async def run(self) -> None:
        """Looks until cancelled."""
        while True:
            try:
                self.learn(await self._presences.all(self.name))
            except AxonError as error:
                _logger.warning("fleet.not_seen", error=str(error))
            await asyncio.sleep(_LOOK_S if self.known else _FIRST_LOOK_S)
