"""Opens a gateway's gRPC server, and reserves its port before anything slow is done. Imports grpc if it is enabled."""

import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from axon.bootstrap.process import bound
from axon.errors import Misconfigured
from axon.settings import Settings
from axon.telemetry.build import version

if TYPE_CHECKING:
    from axon.gateway.grpc.server import GrpcServer
    from axon.gateway.http.middleware import Middleware
    from axon.gateway.turn.context import Gateway


@contextmanager
def grpc_reserved(settings: Settings) -> Iterator[Settings]:
    """Binds the gRPC port, if it is to be served, without listening on it; gives the settings with the port's number.

    The server binds it again beside this socket (SO_REUSEPORT), and so do all processes of a server that has several.
    This socket is bound without the option first, which fails if another server has the port.
    """
    config = settings.grpc
    if not config.enabled:
        yield settings
        return
    with bound(config.host, config.port, "--set grpc.port=PORT") as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        yield replace(settings, grpc=replace(config, port=listener.getsockname()[1]))


async def open_grpc(
    settings: Settings, gateway: "Gateway", middleware: "Middleware", stack: AsyncExitStack
) -> "GrpcServer | None":
    """Starts the gRPC server, which the stack stops; None if it is not enabled."""
    if not settings.grpc.enabled:
        return None
    try:
        from axon.gateway.grpc.parts import make_parts
        from axon.gateway.grpc.server import GrpcServer
    except ImportError as error:
        raise Misconfigured(
            f"grpc.enabled needs packages that are not installed ({error.name}): pip install 'axon-serving[grpc]'."
        ) from None
    parts = make_parts(gateway, middleware, version=version())
    server = GrpcServer(parts, settings.grpc, turn_s=settings.sessions.turn_timeout_s)
    stack.push_async_callback(server.stop, 0.0)
    await server.start()
    return server


def grpc_address(settings: Settings) -> str:
    """The address of the gRPC server for the terminal; empty if there is none."""
    host = settings.grpc.host
    return f"{f'[{host}]' if ':' in host else host}:{settings.grpc.port}" if settings.grpc.enabled else ""
