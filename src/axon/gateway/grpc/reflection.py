"""Reflection: tells clients such as grpcurl which services, methods and messages there are. Knows no turn."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing

from grpc_reflection.v1alpha._async import ReflectionServicer
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest

from axon.errors import InvalidInput
from axon.gateway.grpc.call import GrpcCall
from axon.gateway.grpc.wire import decoded

_MAX_REQUEST_BYTES = 4096
_MAX_REQUESTS = 1000
"""Questions that one call may ask; grpcurl asks a handful."""


class Reflection:
    """Answers questions about services. Both versions of the protocol have the same messages."""

    def __init__(self, services: Iterable[str]) -> None:
        self._servicer = ReflectionServicer(services)

    async def info(self, call: GrpcCall) -> None:
        """Answers one question after the other, until the client asks no more."""
        await call.begin()
        async with aclosing(self._servicer.ServerReflectionInfo(_questions(call), None)) as answers:
            async for answer in answers:
                await call.write(answer.SerializeToString())


async def _questions(call: GrpcCall) -> AsyncIterator[ServerReflectionRequest]:
    for _ in range(_MAX_REQUESTS):
        try:
            async with asyncio.timeout(call.gateway.config.body_timeout_s):
                data = await call.next_bytes()
        except TimeoutError:
            return
        if data is None:
            return
        if len(data) > _MAX_REQUEST_BYTES:
            raise InvalidInput(f"A question may have {_MAX_REQUEST_BYTES} bytes.")
        yield decoded(ServerReflectionRequest, data)
