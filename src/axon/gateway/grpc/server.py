"""The gRPC server: its bounds, its start and its end, and what runs around every call. Knows no method's meaning.

grpc's library has threads of its own for connections; every call runs in the event loop of the gateway. A call is
received as one that streams both ways, whatever its method, because then its message stays in the connection's window
(64 KB) until the call was authenticated and there is room for it.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import grpc
import structlog

from axon.errors import AxonError, Misconfigured
from axon.gateway.config import GatewayConfig
from axon.gateway.grpc.call import Context, GrpcCall
from axon.gateway.grpc.config import GrpcConfig
from axon.gateway.grpc.methods import Method, make_methods
from axon.gateway.grpc.parts import GrpcParts
from axon.gateway.http.errors import ClientLeft, Internal

_SURPLUS_CALLS = 1000
"""Calls beyond ``gateway.max_connections`` that are answered with our own error; grpc refuses those beyond that."""
_CLIENT_PING_MS = 10_000
"""A client that pings more often than this, while nothing else is sent, is told to stop."""
_IDENTITY_ONLY = 1
"""Bit set of the compressions that are taken: none, since a compressed message could be a thousand times as large."""

_logger = structlog.get_logger("axon.gateway")

if TYPE_CHECKING:
    _Handler = grpc.RpcMethodHandler[Any, Any]  # generic in its stubs alone


class GrpcServer:
    """Serves gRPC on one port."""

    def __init__(self, parts: GrpcParts, config: GrpcConfig, *, turn_s: float) -> None:
        """``turn_s`` is the longest time that a turn may take."""
        self._parts, self._config = parts, config
        self.num_calls = 0
        """Calls that are being answered."""
        limits = parts.gateway.config
        self._server = grpc.aio.server(
            handlers=[_Handlers({path: self._handler(path, each) for path, each in make_methods().items()})],
            options=_options(limits, config, turn_s),
            maximum_concurrent_rpcs=limits.max_connections + _SURPLUS_CALLS,
        )

    async def start(self) -> None:
        """Listens and serves; raises ``Misconfigured`` if the port cannot be bound."""
        host, port = self._config.host, self._config.port
        try:
            self._server.add_insecure_port(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
        except RuntimeError:
            raise Misconfigured(f"Cannot listen on {host}:{port}. Choose another grpc.host or grpc.port.") from None
        await self._server.start()

    async def stop(self, grace_s: float) -> None:
        """Takes no new call, and returns when all calls have ended; after ``grace_s`` seconds they are cut off."""
        await self._server.stop(grace_s)

    def _handler(self, path: str, method: Method) -> "_Handler":
        return grpc.stream_stream_rpc_method_handler(partial(self._serve, path, method))

    async def _serve(self, path: str, method: Method, _messages: object, context: Context) -> None:
        """Answers one call. What it does is not cut off when the client leaves: it finds out, as over HTTP."""
        with self._parts.middleware.busy():
            self.num_calls += 1
            call = GrpcCall(self._parts, path, context, is_probe=not method.needed)
            work = asyncio.create_task(_answer(call, method))
            try:
                await asyncio.shield(work)
            except asyncio.CancelledError:
                call.leave()
                await work
                raise
            finally:
                self.num_calls -= 1


class _Handlers(grpc.GenericRpcHandler):
    """Finds the handler of a method."""

    def __init__(self, handlers: Mapping[str, "_Handler"]) -> None:
        self._handlers = handlers

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "_Handler | None":
        return self._handlers.get(handler_call_details.method)


async def _answer(call: GrpcCall, method: Method) -> None:
    """Admits a call and serves it, or ends it with the status of what either raises."""
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(request_id=call.request_id)
    try:
        await call.admit(method.needed)
        await method.serve(call)
        call.count(499 if call.has_left else 200)
    except AxonError as error:
        await call.refuse(error)
    except asyncio.CancelledError:
        await call.refuse(ClientLeft())
        raise
    except Exception:
        _logger.exception("request.failed")
        await call.refuse(Internal())
    finally:
        call.release()


def _options(limits: GatewayConfig, config: GrpcConfig, turn_s: float) -> list[tuple[str, int]]:
    """Returns the library's options for our limits."""
    return [
        # The port is reserved by a socket that does not listen; see bootstrap/gateway/grpc.py.
        ("grpc.so_reuseport", 1),
        ("grpc.max_receive_message_length", limits.max_body_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_metadata_size", limits.max_header_bytes),
        ("grpc.absolute_max_metadata_size", limits.max_header_bytes),
        ("grpc.max_concurrent_streams", config.max_streams),
        ("grpc.max_allowed_incoming_connections", limits.max_connections),
        ("grpc.server_handshake_timeout_ms", _ms(limits.header_timeout_s)),
        ("grpc.keepalive_time_ms", _ms(config.ping_s)),
        ("grpc.keepalive_timeout_ms", _ms(config.ping_s)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", _CLIENT_PING_MS),
        ("grpc.max_connection_age_ms", _ms(config.lifetime_s)),
        ("grpc.max_connection_age_grace_ms", _ms(turn_s)),
        ("grpc.compression_enabled_algorithms_bitset", _IDENTITY_ONLY),
        ("grpc.http2.bdp_probe", 0),  # it would widen the window, and with it what waits unread
    ]


def _ms(seconds: float) -> int:
    return max(1, round(seconds * 1000))
