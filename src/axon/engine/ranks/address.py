"""The rendezvous address of a group of ranks: ``tcp://HOST:PORT``. Knows no ranks."""

import socket
import time
from urllib.parse import urlsplit

from axon.errors import Misconfigured

LOCAL = "127.0.0.1"
_RETRY_S = 0.2
_CONNECT_S = 5.0


def open_listener(rendezvous: str, *, patience_s: float = 0.0) -> socket.socket:
    """A socket that listens at the rendezvous; without one, on loopback at a free port.

    A host's name may be known some time after the host is: it is looked up again for ``patience_s`` seconds.
    """
    host, port = parse(rendezvous) if rendezvous else (LOCAL, 0)
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        except OSError as error:
            if isinstance(error, socket.gaierror) and time.monotonic() < deadline:
                time.sleep(_RETRY_S)
                continue
            raise Misconfigured(f"engine.rendezvous = {rendezvous} cannot be listened on: {error.strerror}") from error


def connect(rendezvous: str, *, patience_s: float) -> socket.socket:
    """Connects to the leading rank, retrying for ``patience_s`` seconds; raises ``OSError`` if it does not come up."""
    host, port = parse(rendezvous)
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return socket.create_connection((host, port), timeout=_CONNECT_S)
        except OSError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_RETRY_S)


def parse(rendezvous: str) -> tuple[str, int]:
    """Host and port; raises ``Misconfigured``."""
    parts = urlsplit(rendezvous)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if parts.scheme != "tcp" or not host or not port:
        raise Misconfigured(f"{rendezvous!r} is no rendezvous: write tcp://HOST:PORT")
    return host, port
