"""Many open streams that cost the client next to nothing: readers that never read, or that wait for a silent stream.

Plain sockets and one epoll, so that a client of thousands needs no task, buffer or thread for each. Starts no server.
"""

import json
import resource
import select
import socket
from dataclasses import dataclass, field

from benchmarks.measures.load import Endpoint

_SMALL_BUFFER_BYTES = 4096
_READ_BYTES = 1 << 16
_CONNECT_S = 30.0


@dataclass(slots=True)
class Streams:
    """So many streams at any time: one that ends or is reset is asked for anew. A context manager."""

    endpoint: Endpoint
    body: dict[str, object]
    reads: bool
    """Whether what comes is read (and thrown away); otherwise nothing is ever read, not even the headers."""
    num_reset: int = 0
    """Streams that the server cut off or ended."""
    num_opened: int = 0
    _open: dict[int, socket.socket] = field(default_factory=dict)
    _poll: select.epoll = field(default_factory=select.epoll)

    def __enter__(self) -> "Streams":
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # the default is below the number of streams
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._open.values():
            each.close()
        self._open.clear()
        self._poll.close()

    def open(self, count: int) -> None:
        """That many more."""
        for _ in range(count):
            self._ask()
            self.turn(0.0)

    def turn(self, seconds: float) -> None:
        """Waits for events of the streams, at most that long, and heeds them."""
        for number, event in self._poll.poll(seconds, 256):
            if event & (select.EPOLLHUP | select.EPOLLERR | select.EPOLLRDHUP) or not self._drain(number):
                self._poll.unregister(number)
                self._open.pop(number).close()
                self.num_reset += 1
                self._ask()

    @property
    def num_open(self) -> int:
        return len(self._open)

    def _ask(self) -> None:
        data = json.dumps({**self.body, "model": self.endpoint.model}).encode()
        headers = {"Host": "127.0.0.1", "Content-Type": "application/json", "Content-Length": str(len(data))}
        lines = [f"{name}: {value}" for name, value in {**headers, **dict(self.endpoint.headers)}.items()]
        each = socket.socket()
        try:
            if not self.reads:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL_BUFFER_BYTES)
            each.settimeout(_CONNECT_S)
            each.connect(("127.0.0.1", self.endpoint.port))
            each.sendall("\r\n".join(["POST /v1/completions HTTP/1.1", *lines, "", ""]).encode() + data)
            each.setblocking(False)
        except OSError:
            each.close()
            raise
        self._open[each.fileno()] = each
        self._poll.register(each.fileno(), select.EPOLLRDHUP | (select.EPOLLIN if self.reads else 0))
        self.num_opened += 1

    def _drain(self, number: int) -> bool:
        """Throws away what has come; False where the stream has ended."""
        try:
            data = self._open[number].recv(_READ_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return bool(data) and b"[DONE]" not in data
