"""The connection between the leading rank and another one: messages both ways, and heartbeats.

Reading and heartbeats run in threads of their own, so that a rank which waits in a collective for one that has died is
ended by them. A group fails as a whole: a rank that loses its peer ends its process.
"""

import contextlib
import queue
import socket
import sys
import threading
import time
from collections.abc import Callable
from os import _exit as exit_process
from typing import TypeVar

from axon.engine.protocol.codec import Decoder, encode
from axon.engine.ranks.protocol import KINDS, Beat, Word
from axon.runtime.framing import BadFrame

LOST_EXIT_CODE = 75
_BEATS_PER_TIMEOUT = 8
_LONGEST_BEAT_S = 1.0
_START_S = 300.0
"""Seconds of silence allowed while a rank starts: loading libraries and compiling can stop all its threads."""
_LOOK_S = 0.25
_RECEIVE_BYTES = 1 << 16

T = TypeVar("T")


class Lost(Exception):
    """The peer has gone or fallen silent."""


class Link:
    """One connected socket; ``watch`` starts its threads. The end of the peer's process is noticed at once."""

    def __init__(self, sock: socket.socket, *, name: str) -> None:
        self.name = name
        self._beat_s = _LONGEST_BEAT_S
        self._silence_s = _START_S
        self._socket = sock
        self._sending = threading.Lock()
        self._words: queue.SimpleQueue[Word | None] = queue.SimpleQueue()
        self._on_loss: Callable[[str], None] | None = None
        self._lost = ""
        self._heard_at = time.monotonic()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(_LOOK_S)

    def watch(self) -> None:
        """Starts to read messages and to send heartbeats."""
        for work in (self._read, self._beat):
            threading.Thread(target=work, name=f"axon-link-{self.name}", daemon=True).start()

    def beat_for(self, timeout_s: float) -> None:
        """Sends heartbeats often enough for a peer with this timeout."""
        self._beat_s = min(_LONGEST_BEAT_S, timeout_s / _BEATS_PER_TIMEOUT)

    def be_strict(self, timeout_s: float) -> None:
        """From now on the peer is lost after ``timeout_s`` of silence: both have started."""
        self._heard_at = time.monotonic()
        self._silence_s = timeout_s

    def end_with_peer(self, on_loss: Callable[[str], None] | None = None) -> None:
        """From now on the loss of the peer calls ``on_loss``, which by default ends this process."""
        self._on_loss = on_loss or end_process
        if self._lost:
            self._on_loss(self._lost)

    def say(self, word: Word) -> None:
        """Sends a message; a failure to send is noticed by the reading thread."""
        with contextlib.suppress(OSError), self._sending:
            self._send_all(encode(word))

    def hear(self, *kinds: type[T], timeout_s: float | None = None) -> T:
        """The next message, which must be of these types; raises ``Lost``, or ``queue.Empty`` after ``timeout_s``."""
        word = self._words.get(timeout=timeout_s)
        if word is None:
            self._words.put(None)
            raise Lost(self._lost)
        if not isinstance(word, kinds):
            raise Lost(f"{self.name} said {word}, which makes no sense now")
        return word

    def close(self) -> None:
        """Closes the connection."""
        self._on_loss = _ignore
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _send_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            with contextlib.suppress(TimeoutError):  # the reading thread decides when the peer is lost
                view = view[self._socket.send(view) :]

    def _read(self) -> None:
        decoder = Decoder(KINDS)
        try:
            while data := self._receive():
                self._heard_at = time.monotonic()
                for word in decoder.feed(data):
                    if not isinstance(word, Beat):
                        self._words.put(word)
            self._lose(f"{self.name} has ended")
        except (OSError, BadFrame, Lost) as error:
            self._lose(f"{self.name} is lost: {error}")

    def _receive(self) -> bytes:
        while True:
            try:
                return self._socket.recv(_RECEIVE_BYTES)
            except TimeoutError:
                silent_s = time.monotonic() - self._heard_at
                if silent_s > self._silence_s:
                    raise Lost(f"not heard of for {silent_s:.1f} s") from None

    def _beat(self) -> None:
        while not self._lost:
            self.say(Beat())
            time.sleep(self._beat_s)

    def _lose(self, reason: str) -> None:
        self._lost = reason
        self._words.put(None)
        if self._on_loss is not None:
            self._on_loss(reason)


def end_process(reason: str) -> None:
    """Ends this process at once, from any thread: others may wait in a collective that never ends."""
    print(f"axon: this rank ends, because {reason}", file=sys.stderr, flush=True)
    exit_process(LOST_EXIT_CODE)


def _ignore(reason: str) -> None: ...
