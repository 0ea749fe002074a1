"""A gateway's stand-in that writes down what a proxy sends to it. It understands strict HTTP/1.1 and nothing else."""

import contextlib
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

from tests.services.process import free_port

Answer = Callable[["Seen", socket.socket], None]
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it came."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes
    head: bytes = field(repr=False)

    @property
    def is_about_key(self) -> bool:
        """Whether it runs nothing: no route takes PUT, by which nginx asks for the words of a refusal."""
        return self.path == "/v1/auth" or self.method == "PUT"

    def values(self, name: str) -> list[str]:
        return [value for each, value in self.headers if each == name]


def ok(seen: Seen, line: socket.socket) -> None:
    """The usual answer."""
    line.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")


def knows_key(seen: Seen, line: socket.socket) -> None:
    """The usual answer about a key."""
    good = "Bearer good" in seen.values("authorization")
    says("200 OK" if good else "401 Unauthorized", "{}")(seen, line)


def says(status: str, body: str, *headers: str) -> Answer:
    """Always the same answer."""

    def answer(seen: Seen, line: socket.socket) -> None:
        lines = [f"HTTP/1.1 {status}", "content-type: application/json", f"content-length: {len(body)}", *headers]
        line.sendall("\r\n".join([*lines, "", body]).encode())

    return answer


def closes(seen: Seen, line: socket.socket) -> None:
    """A gateway that dies over a request that it has read."""
    line.shutdown(socket.SHUT_RDWR)


class Upstream:
    """Listens from ``with`` on; ``answer`` is for requests, ``about_key`` for questions about a key."""

    def __init__(self, answer: Answer = ok, *, on_head: Callable[[], None] = lambda: None) -> None:
        """``on_head`` is called when a request that has a body has begun."""
        self.answer, self._on_head = answer, on_head
        self.about_key: Answer = knows_key
        self.port = free_port()
        self.seen: list[Seen] = []
        self.problems: list[str] = []
        """What came that is no request, or one that can be read in two ways."""
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=1024)
        self._lines: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> "Upstream":
        self._begin(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for line in list(self._lines):
            _end(line)
        for thread in self._threads:
            thread.join(PATIENCE_S)

    @property
    def asked(self) -> list[Seen]:
        """Requests without those about a key."""
        return [each for each in self.seen if not each.is_about_key]

    def forget(self) -> None:
        self.about_key = knows_key
        self.seen.clear()
        self.problems.clear()

    def _begin(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self._listener.accept()
            except OSError:
                return
            self._lines.add(line)
            self._begin(self._serve, line)

    def _serve(self, line: socket.socket) -> None:
        buffer = b""
        try:
            while True:
                while b"\r\n\r\n" not in buffer:
                    if not (data := line.recv(65536)):
                        if buffer:
                            self.problems.append(f"half a request: {buffer[:200]!r}")
                        return
                    buffer += data
                head, _, buffer = buffer.partition(b"\r\n\r\n")
                seen, buffer = self._read(head, buffer, line)
                self.seen.append(seen)
                (self.about_key if seen.is_about_key else self.answer)(seen, line)
        except OSError:
            return
        finally:
            self._lines.discard(line)
            line.close()

    def _read(self, head: bytes, rest: bytes, line: socket.socket) -> tuple[Seen, bytes]:
        lines = head.split(b"\r\n")
        if b"\n" in head.replace(b"\r\n", b"") or any(each[:1] in b" \t" for each in lines):
            self.problems.append(f"a bare line feed or a folded header: {head!r}")
        method, path, _ = lines[0].decode("latin-1").split(" ", 2)
        pairs = [each.decode("latin-1").partition(":") for each in lines[1:]]
        headers = [(name.lower(), value.strip()) for name, _, value in pairs]
        lengths = [value for name, value in headers if name == "content-length"]
        codings = [value for name, value in headers if name == "transfer-encoding"]
        if len(lengths) + len(codings) > 1:
            self.problems.append(f"two lengths: {head!r}")
        if codings or lengths:
            self._on_head()
        more = _Reader(line, rest)
        body = more.chunked() if codings else more.exactly(int(lengths[0]) if lengths else 0)
        return Seen(method, path, headers, body, head), more.rest


class _Reader:
    def __init__(self, line: socket.socket, rest: bytes) -> None:
        self._line, self.rest = line, rest

    def exactly(self, count: int) -> bytes:
        while len(self.rest) < count:
            self._more()
        found, self.rest = self.rest[:count], self.rest[count:]
        return found

    def chunked(self) -> bytes:
        parts = []
        while size := int(self._until_line_end(), 16):
            parts.append(self.exactly(size))
            self.exactly(2)
        while self._until_line_end():
            pass  # trailers
        return b"".join(parts)

    def _until_line_end(self) -> bytes:
        while b"\r\n" not in self.rest:
            self._more()
        found, _, self.rest = self.rest.partition(b"\r\n")
        return found

    def _more(self) -> None:
        if not (data := self._line.recv(65536)):
            raise ConnectionError("the request broke off")
        self.rest += data


def _end(line: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it may have ended already
        line.shutdown(socket.SHUT_RDWR)
