"""Connections to Redis over TLS that share one context: to read a system's certificates takes 50 ms. Knows no command.

With CAs of its own (``service_ca_file``, or ``ssl_ca_certs`` and its like in the URL), a service is trusted by these
alone; the driver would trust the system's besides. Every other option of the URL counts as the driver has it.
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
    """The driver's context, but for the system's CAs beside those that are named."""
    if not (asked.ca_certs or asked.ca_path or asked.ca_data):
        return asked.get()
    context = ssl.create_default_context(cafile=asked.ca_certs, capath=asked.ca_path, cadata=asked.ca_data)
    context.check_hostname = asked.check_hostname
    context.verify_mode = asked.cert_reqs
    for flag in asked.include_verify_flags or ():
        context.verify_flags |= flag
    for flag in asked.exclude_verify_flags or ():
        context.verify_flags &= ~flag
    if asked.certfile or asked.keyfile:
        context.load_cert_chain(asked.certfile or "", asked.keyfile, asked.password)
    if asked.min_version is not None:
        context.minimum_version = asked.min_version
    if asked.ciphers is not None:
        context.set_ciphers(asked.ciphers)
    return context
