"""Watches deployments that have no worker, or too few: reads who waits for them, how long their starts take and whether
more workers can come, and notes when each deployment was last asked. Knows no request."""

from collections.abc import Awaitable, Callable, Iterable, Sequence

import structlog

from axon.admission.line import Line
from axon.admission.place import Place
from axon.domain.registry.served import RUNNING
from axon.errors import AxonError
from axon.gateway.offers.registered import RegisteredOffer
from axon.registry.cold_starts import ColdStarts
from axon.registry.fleet_report import FleetReports
from axon.registry.last_asked import LastAsked
from axon.registry.load_problems import LoadProblems
from axon.runtime.clock import Clock
from axon.telemetry.metrics import Metrics
from axon.telemetry.sparse import Sparse

_MEASURED_S, _UNKNOWN_S = 10.0, 1.0
"""Seconds after which the start of a version without a worker is read again: a measured one, and one that was not."""

_logger = structlog.get_logger("axon.gateway")
Lines = Callable[[Sequence[Place]], Awaitable[Sequence[Line]]]


class Watch:
    """``look`` about once a second. What ``live`` does not answer stays as it was."""

    def __init__(
        self,
        lines: Lines,
        cold_starts: ColdStarts,
        last_asked: LastAsked,
        reports: FleetReports,
        problems: LoadProblems,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        """``lines`` reads the lines of places, ``reports`` has control's last one."""
        self._lines, self._cold_starts, self._last_asked = lines, cold_starts, last_asked
        self._reports, self._problems = reports, problems
        self._reported = float("-inf"), float("-inf")
        """Unix time of the last report, and the monotonic time at which it was first read."""
        self._clock, self._metrics = clock, metrics
        self._asked: dict[str, float] = {}
        """Deployments that were asked since the last note, each with the Unix time of its last request."""
        self._read_at: dict[str, float] = {}
        """By version: the monotonic time at which its measured start was last read."""
        self._failures = Sparse()

    def asked(self, deployment: str) -> None:
        """Remembers that a deployment is asked now; ``look`` writes it down."""
        self._asked[deployment] = self._clock.now()

    async def look(self, offers: Iterable[RegisteredOffer]) -> None:
        """Reads lines and starts of those without a worker or with turns in line, and notes who was asked."""
        known = [each for each in offers if each.is_known]
        try:
            await self._note()
            await self._read_growth(known)
            await self._read([each for each in known if _is_watched(each)])
            self._failures.reset()
        except AxonError as error:
            if (held_back := self._failures.pass_at(self._clock.monotonic())) is not None:
                _logger.warning("starts.not_watched", error=str(error), not_logged=held_back)
        for offer in known:
            offer.look_at_starts()

    async def _note(self) -> None:
        asked, self._asked = self._asked, {}
        for deployment, at in asked.items():
            await self._last_asked.put(deployment, at)

    async def _read_growth(self, offers: Sequence[RegisteredOffer]) -> None:
        """Reads control's report while a pool is full: nobody asks for it otherwise."""
        status = None
        if any(offer.fleet.full_pools for offer in offers):
            status = await self._reports.last()
        if status is not None and status.at != self._reported[0]:
            self._reported = status.at, self._clock.monotonic()
        for offer in offers:
            offer.look_at_growth(status, self._reported[1])

    async def _read(self, watched: Sequence[RegisteredOffer]) -> None:
        pools = [(offer, pool) for offer in watched for pool in sorted(offer.starts.pools | {""})]
        lines = await self._lines([Place(offer.name, pool) for offer, pool in pools])
        for (offer, pool), line in zip(pools, lines, strict=True):
            offer.starts.saw(pool, line)
        for offer in watched:
            self._metrics.turns.waiting.labels(offer.name).set(offer.starts.num_waiting)
            self._metrics.turns.cold.labels(offer.name)  # a counter that begins at 1 would hide its first event
            missing = _missing(offer)
            for version in missing:
                await self._measure(offer, version)
            offer.starts.failed = frozenset([each for each in missing if await self._problems.of(offer.name, each)])

    async def _measure(self, offer: RegisteredOffer, version: str) -> None:
        now = self._clock.monotonic()
        every_s = _MEASURED_S if offer.starts.is_measured(version) else _UNKNOWN_S
        if now - self._read_at.get(version, float("-inf")) < every_s:
            return
        self._read_at[version] = now
        if (measured := await self._cold_starts.of(version)) is not None:
            offer.starts.measured(version, measured.seconds)


def _is_watched(offer: RegisteredOffer) -> bool:
    return bool(_missing(offer)) or offer.starts.is_wanted


def _missing(offer: RegisteredOffer) -> list[str]:
    """Versions of the deployment that have no worker."""
    members = offer.deployment.members
    return [each.version for each in members if each.state in RUNNING and each.version not in offer.fleet.versions]
