"""Connections to Redis over TLS that share one context: to read a system's certificates takes 50 ms. Knows no command.

With a CA file of its own, a service is trusted by that file alone; the driver would trust the system's CAs besides.
"""

import ssl
from collections.abc import Mapping
from typing import Any, ClassVar

from redis.asyncio import RedisCluster
from redis.asyncio.connection import AbstractConnection, RedisSSLContext, SSLConnection


class _SharedContext(SSLConnection):
    shared: ClassVar[ssl.SSLContext | None] = None

    def _connection_arguments(self) -> Mapping[str, Any]:
        kind = type(self)
        kind.shared = self.ssl_context.context = kind.shared or _context(self.ssl_context)
        arguments: Mapping[str, Any] = super()._connection_arguments()
        return arguments


def sharing(connection_class: type[AbstractConnection]) -> type[AbstractConnection]:
    """A subclass of the connection class whose connections share a TLS context, if they use TLS at all."""
    if not issubclass(connection_class, SSLConnection):
        return connection_class
    return type(f"Sharing{connection_class.__name__}", (_SharedContext, connection_class), {})


def share_in_cluster(server: RedisCluster) -> None:
    """The same for connections to all nodes of a cluster, those that are still unknown too."""
    shared = sharing(server.connection_kwargs["connection_class"])
    server.connection_kwargs["connection_class"] = shared
    for node in server.nodes_manager.startup_nodes.values():
        node.connection_class = shared  # type: ignore[assignment]  # the stub knows no other class than its own


def _context(asked: RedisSSLContext) -> ssl.SSLContext:
    if not asked.ca_certs:
        return asked.get()
    context = ssl.create_default_context(cafile=asked.ca_certs)
    context.check_hostname = asked.check_hostname
    context.verify_mode = asked.cert_reqs
    if asked.certfile or asked.keyfile:
        context.load_cert_chain(asked.certfile or "", asked.keyfile, asked.password)
    return context
