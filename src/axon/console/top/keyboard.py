"""Keys of a terminal: bytes become names of keys, and the terminal gives each at once. Knows no meaning of any."""

import os
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager

_NAMED = {
    b"\x1b[A": "up",
    b"\x1b[B": "down",
    b"\x1b[C": "right",
    b"\x1b[D": "left",
    b"\x1b[Z": "backtab",
    b"\r": "enter",
    b"\n": "enter",
    b"\t": "tab",
    b"\x7f": "backspace",
    b"\x08": "backspace",
    b"\x03": "ctrl-c",
    b"\x04": "ctrl-d",
    b"\x15": "ctrl-u",
}
_MAX_KEPT = 16
"""Bytes of a sequence that has not ended; more are no key."""
READ_BYTES = 1024


class Keys:
    """Makes keys of bytes as they are read; a character or a sequence may come in two parts."""

    def __init__(self) -> None:
        self._kept = b""

    def take(self, data: bytes) -> list[str]:
        """The keys that have come in whole. An escape alone at the end is the key itself."""
        found: list[str] = []
        rest = self._kept + data
        while rest:
            key, length = _first(rest)
            if not length:
                break
            found += [key] if key else []
            rest = rest[length:]
        self._kept = rest if len(rest) <= _MAX_KEPT else b""
        return found


def _first(data: bytes) -> tuple[str, int]:
    """The first key and its number of bytes; an empty name for what is no key, and 0 bytes for a part of one."""
    if data[:1] == b"\x1b":
        return _escaped(data)
    if (name := _NAMED.get(data[:1])) is not None:
        return name, 1
    if data[0] < 0x20:
        return "", 1
    if 0x80 <= data[0] < 0xC2 or data[0] > 0xF4:  # no character begins so
        return "", 1
    length = 1 if data[0] < 0x80 else 2 if data[0] < 0xE0 else 3 if data[0] < 0xF0 else 4
    if len(data) < length:
        return "", 0
    try:
        return data[:length].decode(), length
    except UnicodeDecodeError:
        return "", 1


def _escaped(data: bytes) -> tuple[str, int]:
    if len(data) == 1:
        return "esc", 1
    if data[1:2] == b"O":  # the keypad's form of the arrows
        return (_NAMED.get(b"\x1b[" + data[2:3], ""), 3) if len(data) > 2 else ("", 0)
    if data[1:2] != b"[":
        return "esc", 1
    for end in range(2, len(data)):
        if 0x40 <= data[end] <= 0x7E:
            return _NAMED.get(data[: end + 1], ""), end + 1
    return "", 0


@contextmanager
def single_keys(descriptor: int) -> Iterator[None]:
    """Lets a terminal give each key at once and not echo it, until the end of the context, whatever ends it.

    ctrl-c still interrupts. ctrl-z does nothing: a suspended program would leave its picture on the screen.
    """
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        settings = termios.tcgetattr(descriptor)
        settings[6][termios.VSUSP] = os.fpathconf(descriptor, "PC_VDISABLE").to_bytes(1, "big")
        termios.tcsetattr(descriptor, termios.TCSANOW, settings)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSAFLUSH, before)
