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


def first(port: int, data: bytes) -> Answer:
    """Sends the bytes; what is answered to them, without waiting for more."""
    with connected(port) as line:
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            line.sendall(data)
        return next(answers(line, most=1))


def first_by_http_2(port: int, *headers: tuple[str, str], body: bytes = b"") -> None:
    """Sends one request by HTTP/2, with headers that no client of HTTP/2 would send, and waits for its end."""
    block = b"".join(b"\0" + _counted(name) + _counted(value) for name, value in headers)
    request = _frame(_HEADERS, _END_HEADERS, 1, block) + _frame(_DATA, _END_STREAM, 1, body)
    with connected(port, protocols=("h2",)) as line:
        line.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(_SETTINGS, 0, 0, b"") + request)
        with contextlib.suppress(ConnectionError, ssl.SSLError), line.makefile("rb") as frames:
            while head := frames.read(9):
                frames.read(int.from_bytes(head[:3], "big"))
                is_end = head[3] in (_HEADERS, _DATA) and head[4] & _END_STREAM
                if is_end or head[3] in (_RESET, _GO_AWAY):
                    return


_DATA, _HEADERS, _RESET, _SETTINGS, _GO_AWAY = 0, 1, 3, 4, 7
_END_STREAM, _END_HEADERS = 1, 4


def _frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    return len(content).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + content


def _counted(text: str) -> bytes:
    assert len(text) < 127, "a longer text has its length in more than one byte"
    return bytes([len(text)]) + text.encode("ascii")
