"""The processes behind one port, as the system shows them: which there are, and which of them has a connection."""

import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol


class Reply(Protocol):
    """An answer whose connection is still open, of whichever release of the HTTP client."""

    @property
    def extensions(self) -> Any: ...


def front_pids(parent: int) -> list[int]:
    """The fronts that this process has now."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [pid for pid in map(int, children) if b"axon.bootstrap.fronts" in _command(pid)]


def holder(reply: Reply, pids: list[int]) -> int:
    """The one of these processes that has the other end of an answer's connection."""
    stream = reply.extensions["network_stream"]
    return _holder([stream.get_extra_info(name)[1] for name in ("server_addr", "client_addr")], pids)


def holder_of(line: socket.socket, pids: list[int]) -> int:
    """The one of these processes that has the other end of a connection."""
    return _holder([line.getpeername()[1], line.getsockname()[1]], pids)


def _holder(ends: list[int], pids: list[int]) -> int:
    inode = _inode(ends)
    [found] = [pid for pid in pids if inode in _sockets(pid)]
    return found


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends between opening and reading
        return False


def _command(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def _inode(ends: list[int]) -> str:
    """The socket of a connection on this machine, by its own port and its peer's."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    # The kernel may list a connection twice in one read, if others end meanwhile.
    [inode] = {line[9] for line in lines if [_port(each) for each in line[1:3]] == ends and line[9] != "0"}
    return inode


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)


def _sockets(pid: int) -> set[str]:
    found = set()
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            found.add(os.readlink(each).removeprefix("socket:[").removesuffix("]"))
    return found
