"""TLS to an edge by hand, for what no client would send."""

import contextlib
import socket
import ssl
from collections.abc import Sequence
from functools import cache

import httpx

from tests.security.raw import Answer, answers
from tests.services.certificates import shared_authority

PATIENCE_S = 60.0
KEY = "Authorization: Bearer good\r\n"


@cache
def trust() -> ssl.SSLContext:
    """Whoever the tests' own CA vouches for, by its name."""
    return ssl.create_default_context(cafile=str(shared_authority().file))


def connected(port: int, *, protocols: Sequence[str] = ("http/1.1",)) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=str(shared_authority().file))
    context.set_alpn_protocols(list(protocols))
    line = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
    return context.wrap_socket(line, server_hostname="localhost")


def talk(port: int, data: bytes) -> list[Answer]:
    """Sends the bytes; the answers until the edge closes, or is silent after the last that was to come."""
    with connected(port) as line:
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            line.sendall(data)
        with contextlib.suppress(ssl.SSLError):
            return list(answers(line, most=5))
    return []


def client(url: str, key: str = "good") -> httpx.Client:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx.Client(base_url=url, headers=headers, verify=trust(), timeout=PATIENCE_S)
