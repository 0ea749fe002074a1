"""The claims of all engines on these cores, in a file that they map, and the lock of a time slice. Decides nothing.

Claims and the level are hints, each number whole but no two of one moment: a wrong one makes slices unfair until who
wrote it writes again, and a wrong level ``MOST_OWED_S`` for each engine. Only the lock counts. It and the proof that a
slot's engine is alive are locks of open files (OFD), which the kernel releases when a process ends, however it ends.
"""

import fcntl
import mmap
import os
import socket
import struct
from contextlib import suppress
from pathlib import Path

from axon.engine.timeshare.order import Claim, State

NUM_SLOTS = 64
_LEVEL = 2 * NUM_SLOTS
"""Where the level is among the board's numbers: behind the states and the counters of all slots."""
_NUM_BYTES = 8 * (_LEVEL + 1)
_ALIVE_AT, _SLICE_AT = 1 << 20, 1 << 21
"""Offsets of the locked bytes, far behind the file's end: the first of the slots', and that of the time slice."""
_STATES = {float(state): state for state in State}


class NoBoard(Exception):
    """The board cannot be used here."""


class Board:
    """This engine's slot on the board, and a view of the others."""

    def __init__(self, folder: Path) -> None:
        """``folder`` belongs to this user alone and to one set of cores; it is made if the one above it is there."""
        self._path = folder
        self._folder = self._file = -1
        self._map: mmap.mmap | None = None
        self._numbers: memoryview[float] | None = None
        self._socket: socket.socket | None = None
        self.slot = -1
        """This engine's; -1 while it is not open."""

    def open(self) -> None:
        """Takes a slot; raises NoBoard."""
        try:
            self._folder = _open_private(self._path)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.open("board", flags, 0o600, dir_fd=self._folder)
            os.posix_fallocate(self._file, 0, _NUM_BYTES)  # a write into a hole of a full disk would end the process
            self._map = mmap.mmap(self._file, _NUM_BYTES)
            self._numbers = memoryview(self._map).cast("d")  # each is read and written whole
            self.slot = self._find_slot()
            self._socket = self._open_socket()
        except OSError as error:
            self.close()
            raise NoBoard(f"{self._path}: {error}") from error

    def close(self) -> None:
        """Leaves the board; a second call does nothing."""
        if self._numbers is not None:
            if self.slot >= 0:
                self.write(State.IDLE, 0.0)
            self._numbers.release()
            self._numbers = None
        if self._map is not None:
            self._map.close()  # it has a descriptor of its own, which would keep the locks
            self._map = None
        if self._socket is not None:
            self._socket.close()
            self._unlink_socket()
            self._socket = None
        for opened in (self._file, self._folder):
            if opened >= 0:
                os.close(opened)
        self._folder = self._file = self.slot = -1

    def write(self, state: State, had_s: float) -> None:
        """Writes this engine's claim."""
        self._write(self.slot, state, had_s)

    def read(self) -> list[Claim]:
        """The claims of all engines that are not idle, and this one's."""
        assert self._numbers is not None, "not open"
        numbers, mine = self._numbers, self.slot
        return [
            Claim(slot=slot, state=_STATES.get(state, State.IDLE), had_s=numbers[NUM_SLOTS + slot])
            for slot, state in enumerate(numbers[:NUM_SLOTS].tolist())
            if state or slot == mine
        ]

    @property
    def level_s(self) -> float:
        """The largest counter that a slice has begun with; it outlives the engines."""
        assert self._numbers is not None, "not open"
        return self._numbers[_LEVEL]

    @level_s.setter
    def level_s(self, level_s: float) -> None:
        assert self._numbers is not None, "not open"
        self._numbers[_LEVEL] = level_s

    def try_hold(self) -> bool:
        """Takes the time slice's lock, if nobody has it."""
        return self._try_lock(_SLICE_AT)

    def release(self) -> None:
        """Gives the time slice's lock back."""
        fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, _lock(fcntl.F_UNLCK, _SLICE_AT))

    def wake(self, slot: int) -> None:
        """Wakes the engine of a slot, if it waits; one that is gone or has been woken is left alone."""
        assert self._socket is not None, "not open"
        self._socket.settimeout(0)
        with suppress(OSError):
            self._socket.sendto(b"!", self._socket_of(slot))

    def wait(self, timeout_s: float) -> bool:
        """Waits until another engine wakes this one; False when nobody has."""
        assert self._socket is not None, "not open"
        self._socket.settimeout(timeout_s)
        try:
            self._socket.recv(1)
        except (TimeoutError, BlockingIOError):
            return False
        return True

    def clear_dead(self) -> None:
        """Takes the claims of engines off that have ended."""
        for claim in self.read():
            if claim.slot != self.slot and not self._is_alive(claim.slot):
                self._write(claim.slot, State.IDLE, 0.0)

    def _write(self, slot: int, state: State, had_s: float) -> None:
        assert self._numbers is not None, "not open"
        self._numbers[NUM_SLOTS + slot] = had_s  # first: who waits does so with this counter
        self._numbers[slot] = float(state)

    def _find_slot(self) -> int:
        for slot in range(NUM_SLOTS):
            if self._try_lock(_ALIVE_AT + slot):
                self._write(slot, State.IDLE, 0.0)
                return slot
        raise OSError(f"all {NUM_SLOTS} slots are taken")

    def _open_socket(self) -> socket.socket:
        self._unlink_socket()  # of an engine that was killed
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            opened.bind(self._socket_of(self.slot))
        except OSError:
            opened.close()
            raise
        return opened

    def _socket_of(self, slot: int) -> str:
        """A path through the open folder: nobody can put another in its place, and it is never too long to bind."""
        return f"/proc/self/fd/{self._folder}/{slot}.sock"

    def _unlink_socket(self) -> None:
        with suppress(FileNotFoundError):
            os.unlink(f"{self.slot}.sock", dir_fd=self._folder)

    def _try_lock(self, at: int) -> bool:
        try:
            fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, _lock(fcntl.F_WRLCK, at))
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _is_alive(self, slot: int) -> bool:
        found = fcntl.fcntl(self._file, fcntl.F_OFD_GETLK, _lock(fcntl.F_WRLCK, _ALIVE_AT + slot))
        (kind,) = struct.unpack_from("=h", found)
        return bool(kind != fcntl.F_UNLCK)


def _lock(kind: int, at: int) -> bytes:
    """``struct flock`` for one byte."""
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, at, 1, 0)


def _open_private(folder: Path) -> int:
    """Opens a folder, and makes it where there is none; one that others own, may write to or link to is refused."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    found = os.fstat(opened)
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        os.close(opened)
        raise OSError("the folder does not belong to this user alone")
    return opened
