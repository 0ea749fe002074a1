"""Length-prefixed frames over a byte stream: a big-endian u32 length, then the body. No I/O; knows no message."""

MAX_FRAME_BYTES = 64 << 20
_PREFIX_BYTES = 4


class BadFrame(ValueError):
    """The peer sent bytes that are no frame of this protocol."""


def framed(body: bytes) -> bytes:
    """Returns the body as one frame."""
    return len(body).to_bytes(_PREFIX_BYTES, "big") + body


class Framer:
    """Cuts received bytes, split anywhere, into the bodies of frames."""

    def __init__(self, max_bytes: int = MAX_FRAME_BYTES) -> None:
        self._buffer = bytearray()
        self._max_bytes = max_bytes

    def feed(self, data: bytes) -> list[bytes]:
        """Returns the bodies of the frames that ``data`` completes; raises ``BadFrame`` for a length over the limit."""
        self._buffer += data
        bodies, start = [], 0
        while len(self._buffer) - start >= _PREFIX_BYTES:
            begin = start + _PREFIX_BYTES
            length = int.from_bytes(self._buffer[start:begin], "big")
            if length > self._max_bytes:
                raise BadFrame(f"a frame of {length} bytes is over the limit of {self._max_bytes}")
            if len(self._buffer) - begin < length:
                break
            start = begin + length
            bodies.append(bytes(self._buffer[begin:start]))
        del self._buffer[:start]
        return bodies
