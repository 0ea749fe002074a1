"""Health, which needs no key: gRPC's own service, and ServerLive and ServerReady of the Open Inference Protocol."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse, HealthListRequest, HealthListResponse

from axon.errors import LimitReached, NotFound
from axon.gateway.grpc.call import GrpcCall
from axon.gateway.turn.context import Gateway
from axon.oip import inference_pb2 as oip

_WATCH_S = 0.5
"""How often a watch looks for a change."""
MAX_WATCHES = 100
"""Watches that may be open at once: whoever opens one shows no key."""
_RETRY_S = 5.0


class Health:
    """Answers whether the server, and each of its services, can take work."""

    def __init__(self, services: frozenset[str]) -> None:
        self._services = services | {""}
        self._num_watches = 0

    async def check(self, call: GrpcCall) -> None:
        """Answers with the status of a service; an empty name means the server."""
        asked = await call.read(HealthCheckRequest)
        if asked.service not in self._services:
            raise NotFound(f"No service '{asked.service}'.", code="unknown_service", param="service")
        await call.respond(HealthCheckResponse(status=status_of(call.gateway)))

    async def list_all(self, call: GrpcCall) -> None:
        """Answers with the status of every service."""
        await call.read(HealthListRequest)
        answer = HealthCheckResponse(status=status_of(call.gateway))
        await call.respond(HealthListResponse(statuses=dict.fromkeys(self._services, answer)))

    async def watch(self, call: GrpcCall) -> None:
        """Sends the status of a service, and again whenever it has changed, until the client leaves."""
        asked = await call.read(HealthCheckRequest)
        if self._num_watches >= MAX_WATCHES:
            raise LimitReached("Too many watches are open.", code="too_many_watches", retry_after_s=_RETRY_S)
        self._num_watches += 1
        try:
            async with aclosing(_changes(call.gateway, is_known=asked.service in self._services)) as changes:
                await call.stream(changes)
        finally:
            self._num_watches -= 1

    async def live(self, call: GrpcCall) -> None:
        """Answers that the process runs."""
        await call.read(oip.ServerLiveRequest)
        await call.respond(oip.ServerLiveResponse(live=True))

    async def ready(self, call: GrpcCall) -> None:
        """Answers whether the server can take work now."""
        await call.read(oip.ServerReadyRequest)
        await call.respond(oip.ServerReadyResponse(ready=is_ready(call.gateway)))


def is_ready(gateway: Gateway) -> bool:
    """Whether the server can take work now, as its readiness probe over HTTP says."""
    return gateway.lifecycle.ready and not gateway.lifecycle.draining and gateway.offers.are_known


def status_of(gateway: Gateway) -> "HealthCheckResponse.ServingStatus":
    """Returns the server's status in gRPC's words."""
    return HealthCheckResponse.SERVING if is_ready(gateway) else HealthCheckResponse.NOT_SERVING


async def _changes(gateway: Gateway, *, is_known: bool) -> AsyncGenerator[bytes, None]:
    last = None
    while True:
        status = status_of(gateway) if is_known else HealthCheckResponse.SERVICE_UNKNOWN
        if status != last:
            last = status
            yield HealthCheckResponse(status=status).SerializeToString()
        await asyncio.sleep(_WATCH_S)
