"""The gRPC server's section of the settings."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcConfig:
    """The gRPC server, on a port of its own; off by default. The limits of ``[gateway]`` hold for it too: sizes and
    times of bodies and headers, connections, wrong keys, unread answers."""

    enabled: bool = False
    """Whether to serve gRPC beside HTTP."""
    host: str = "127.0.0.1"
    """Address to listen on; loopback by default."""
    port: int = 50051
    """Port of the gRPC server; 0 takes a free one."""
    max_streams: int = 100
    """Calls that one connection may have open at once; a client's library lets further ones wait."""
    ping_s: float = 20.0
    """A connection is pinged after this time of silence, and closed if no answer comes within the same time."""
    lifetime_s: float = 3600.0
    """A connection takes no new call after this time, and is closed when the turns that run then must have ended; the
    client's library opens another by itself."""
