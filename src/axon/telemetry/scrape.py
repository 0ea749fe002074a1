"""Serves the metrics and probes of a process over HTTP, from a thread of its own. Knows no metric."""

import json
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from socketserver import ThreadingMixIn
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import make_wsgi_app
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

_TEXT = "text/plain; version=0.0.4"
"""Prometheus's own format, whatever else a scraper accepts: in the others, prometheus_client writes the colon of
vLLM's names as an underscore."""


def serve_scrapes(
    registry: CollectorRegistry,
    host: str,
    port: int,
    probes: Mapping[str, Callable[[], str]] = MappingProxyType({}),
    collector: Collector | None = None,
) -> tuple[int, Callable[[], None]]:
    """Serves ``GET /metrics`` and the probes from a thread; returns the bound port and a function that stops it.

    A probe, called by its path, returns what is wrong, or an empty string. A ``collector`` is shown in place of the
    registry.
    """
    app = make_wsgi_app(registry if collector is None else _registry_of(collector))

    def answered(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/metrics":
            answer: Iterable[bytes] = app({**environ, "HTTP_ACCEPT": _TEXT}, start_response)
            return answer
        if path in probes:
            wrong = probes[path]()
            status = "503 Service Unavailable" if wrong else "200 OK"
            start_response(status, [("Content-Type", "application/json")])
            return [json.dumps({"status": wrong or "ok"}).encode()]
        start_response("404 Not Found", [("Content-Type", "text/plain")])
        return [b"The metrics are at /metrics.\n"]

    server = make_server(host, port, answered, server_class=_Server, handler_class=_QuietHandler)
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="metrics", daemon=True)
    thread.start()

    def close() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return server.server_port, close


def _registry_of(collector: Collector) -> CollectorRegistry:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return registry


class _Server(ThreadingMixIn, WSGIServer):
    """A thread per request, so that slow scrapers block neither each other nor the exit of the process."""

    daemon_threads = True

    def server_bind(self) -> None:
        # wsgiref would look up the host name in the DNS here, which can take seconds and is not needed.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()


class _QuietHandler(WSGIRequestHandler):
    timeout = 10.0

    def log_message(self, format: str, *args: Any) -> None:
        """Does not log requests."""
