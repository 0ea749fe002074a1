"""A network that breaks: passes bytes on to a server and cuts connections in the middle of an answer."""

import contextlib
import random
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

_PIECE = 400


class Cutting:
    """A proxy on loopback. Of its connections, most are cut after some bytes of what the server says."""

    def __init__(self, url: str, seed: int, *, most_bytes: int) -> None:
        target = urlsplit(url)
        assert target.hostname is not None
        self._target = (target.hostname, target.port)
        self._rng = random.Random(seed)
        self._most_bytes = most_bytes
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.num_cut = 0

    def run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self, client: socket.socket) -> None:
        left = self._rng.randint(1, self._most_bytes) if self._rng.random() < 0.8 else 1 << 40
        with client, contextlib.suppress(OSError), socket.create_connection(self._target) as server:
            threading.Thread(target=_pump, args=(client, server), daemon=True).start()
            while left > 0 and (data := server.recv(min(_PIECE, left))):
                client.sendall(data)
                left -= len(data)
            self.num_cut += left <= 0
            for end in (client, server):
                end.shutdown(socket.SHUT_RDWR)  # closing alone waits for the other thread's read


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)


@contextlib.contextmanager
def cutting(url: str, seed: int, *, most_bytes: int = 6000) -> Iterator[Cutting]:
    """The proxy in a thread of its own, until the block ends."""
    proxy = Cutting(url, seed, most_bytes=most_bytes)
    threading.Thread(target=proxy.run, daemon=True).start()
    try:
        yield proxy
    finally:
        proxy.close()
