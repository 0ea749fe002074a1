"""What all calls of a gRPC server share. Values only."""

from dataclasses import dataclass

from axon.gateway.grpc.reading import Reading
from axon.gateway.http.middleware import Middleware
from axon.gateway.turn.context import Gateway


@dataclass(frozen=True, slots=True)
class _State:
    gateway: Gateway


@dataclass(frozen=True, slots=True)
class App:
    """Stands for the HTTP application in the scope of a call, where ``gateway_of`` looks for the gateway."""

    state: _State


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcParts:
    """The parts that calls share; ``bootstrap`` makes them and passes them in."""

    gateway: Gateway
    middleware: Middleware
    """Authenticates, limits and counts calls as it does HTTP requests."""
    reading: Reading
    version: str
    """The server's release."""

    @property
    def app(self) -> App:
        return App(_State(self.gateway))


def make_parts(gateway: Gateway, middleware: Middleware, *, version: str) -> GrpcParts:
    """Returns the parts of a gateway's gRPC server."""
    config = gateway.config
    reading = Reading(
        max_bytes=config.max_held_body_bytes,
        max_tenant_bytes=config.max_tenant_body_bytes,
        max_message_bytes=config.max_body_bytes,
    )
    return GrpcParts(gateway=gateway, middleware=middleware, reading=reading, version=version)
