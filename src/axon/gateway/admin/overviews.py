"""Reads one look at the server: the gateway's own numbers, and what workers, accounts and control say of the fleet."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from axon.admission.line import Line
from axon.admission.place import Place
from axon.domain.histogram import BOUNDS
from axon.domain.overview import (
    MAX_GATEWAYS,
    MAX_MODELS,
    MAX_QUEUES,
    MAX_TENANTS,
    MAX_WORKERS,
    GatewayLook,
    Overview,
)
from axon.errors import AxonError
from axon.gateway.admin.looks import (
    METRICS,
    control_look,
    gateway_look,
    model_look,
    places_of,
    queue_looks,
    tenant_looks,
    worker_look,
)
from axon.gateway.turn.context import Gateway
from axon.registry.fleet_report import FleetReports
from axon.registry.holders import Holders
from axon.runtime.clock import Clock
from axon.telemetry.build import version
from axon.telemetry.reading import Reading

_GATEWAYS_S = 5.0
"""Seconds for which the list of gateways is kept, because it takes hundreds of small reads."""
Lines = Callable[[Sequence[Place]], Awaitable[Sequence[Line]]]
T = TypeVar("T")


class Overviews:
    """``look`` for each request. What ``live`` does not answer is left out, and the look says so."""

    def __init__(self, name: str, lines: Lines, holders: Holders, reports: FleetReports, clock: Clock) -> None:
        """``name`` is this gateway's, ``lines`` reads the lines of places, ``holders`` knows the gateways, and
        ``reports`` has control's last one."""
        self._name, self._lines, self._holders, self._reports, self._clock = name, lines, holders, reports, clock
        self._began = clock.monotonic()
        self._gateways: tuple[str, ...] = (name,)
        self._gateways_at = float("-inf")

    async def look(self, gateway: Gateway) -> Overview:
        """Everything, as it is now."""
        problems: list[str] = []
        status = await _read(self._reports.last(), None, "control's report", problems)
        gateways = await _read(self._known_gateways(), self._gateways, "the list of gateways", problems)
        offers = gateway.offers.all()
        # Before the next await: a deployment that is removed meanwhile has no state any more.
        models = tuple(model_look(offer, status) for offer in offers[:MAX_MODELS])
        places = places_of(offers)
        lines = await _read(self._lines(places[:MAX_QUEUES]), (), "the queues", problems)
        reading, now = Reading(gateway.metrics.registry, METRICS), self._clock.now()
        presences = [presence for offer in offers for presence in offer.fleet.presences]
        tenants = tenant_looks(reading)
        return Overview(
            at=now,
            gateway=self._own(gateway, reading),
            gateways=gateways[:MAX_GATEWAYS],
            num_gateways=len(gateways),
            control=control_look(status, now),
            bounds=BOUNDS,
            workers=tuple(worker_look(each, now) for each in presences[:MAX_WORKERS]),
            num_workers=len(presences),
            models=models,
            num_models=len(offers),
            queues=queue_looks(places, lines),
            num_queues=len(places),
            tenants=tenants[:MAX_TENANTS],
            num_tenants=len(tenants),
            problems=tuple(problems),
        )

    def _own(self, gateway: Gateway, reading: Reading) -> GatewayLook:
        return gateway_look(
            reading,
            name=self._name,
            version=version(),
            up_s=self._clock.monotonic() - self._began,
            draining=gateway.lifecycle.draining,
            streams=gateway.follower.num_streams,
        )

    async def _known_gateways(self) -> tuple[str, ...]:
        now = self._clock.monotonic()
        if now - self._gateways_at >= _GATEWAYS_S:
            self._gateways = tuple(sorted({self._name, *await self._holders.all()}))
            self._gateways_at = now
        return self._gateways


async def _read(asked: Awaitable[T], otherwise: T, what: str, problems: list[str]) -> T:
    """What was asked for; ``otherwise``, with the problem noted, where ``live`` does not answer."""
    try:
        return await asked
    except AxonError as error:
        problems.append(f"{what}: {error.message}")
        return otherwise
