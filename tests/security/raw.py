"""HTTP by hand, for what no client would send."""

import contextlib
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.journeys.server import Server

PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a connection."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        """Of an error in the shape of all errors."""
        error: dict[str, Any] = json.loads(self.body)["error"]
        return str(error["code"])


def connected(server: Server) -> socket.socket:
    address = urlsplit(server.url)
    return socket.create_connection((address.hostname, address.port), timeout=PATIENCE_S)


def talk(server: Server, *pieces: bytes) -> list[Answer]:
    """Sends the pieces and says that nothing more comes; the answers until the server closes or is silent."""
    with connected(server) as line:
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                line.sendall(piece)
        return list(answers(line, most=20))


def answers(line: socket.socket, *, most: int) -> Iterator[Answer]:
    """What comes over the connection, answer by answer, until its end or until ``most`` have come."""
    with line.makefile("rb") as lines:
        for _ in range(most):
            try:
                first = lines.readline()
                if not first:
                    return
                headers = _headers(lines)
                yield Answer(int(first.split()[1]), headers, _body(lines, headers))
            except ConnectionError:
                return


def _headers(lines: Any) -> dict[str, str]:
    found = {}
    while line := lines.readline().strip():
        name, _, value = line.decode("latin-1").partition(":")
        found[name.lower()] = value.strip()
    return found


def _body(lines: Any, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding") != "chunked":
        return bytes(lines.read(int(headers.get("content-length", 0))))
    parts = []
    while size := int(lines.readline(), 16):
        parts.append(lines.read(size))
        lines.readline()
    lines.readline()
    return b"".join(parts)


def request(target: str, *headers: str, method: str = "GET", version: str = "1.1", body: bytes = b"") -> bytes:
    """A request that asks for the connection's end; headers stand as they are given."""
    told = [f"{method} {target} HTTP/{version}", "Host: axon", "Connection: close", *headers]
    if body:
        told.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*told, "", ""]).encode("latin-1") + body
