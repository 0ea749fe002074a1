"""``axon`` for a shell's script: a program on the path that is forked from the warm process. Knows no test.

    with axon_on_path() as path:
        subprocess.run(["sh", "-c", "axon keys create"], env={"PATH": path, ...})

A script starts its programs itself, so that ``warm.run`` cannot. The ``axon`` that it finds here is a few lines that
give their arguments, environment, folder and streams to a thread of this process, and end as the fork does.
"""

import array
import json
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services import warm

_LARGEST_BYTES = 1 << 20
_NUM_STREAMS = 3
_PROGRAM = """#!{python} -IS
import array, json, os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as ours:
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    ours.connect({address!r})
    ask = dict(arguments=sys.argv[1:], environ=dict(os.environ), folder=os.getcwd())
    streams = array.array("i", [0, 1, 2])
    ours.sendmsg([json.dumps(ask).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
    code = int(ours.recv(64) or b"70")
sys.exit(code if code >= 0 else 128 - code)
"""


@contextmanager
def axon_on_path() -> Iterator[str]:
    """A ``PATH`` on which ``axon`` is found first; without warm starts it is this environment's own program."""
    inherited = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    if not warm.enabled():
        yield inherited
        return
    with (
        tempfile.TemporaryDirectory(prefix="axon-path-") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening,
    ):
        address, program = f"{folder}/socket", Path(folder) / "axon"
        program.write_text(_PROGRAM.format(python=Path(sys.executable).resolve(), address=address))
        program.chmod(0o755)
        listening.bind(address)
        listening.listen()
        thread = threading.Thread(target=_serve, args=(listening,), name="axon-on-path", daemon=True)
        thread.start()
        try:
            yield f"{folder}{os.pathsep}{inherited}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(listening: socket.socket) -> None:
    """One after the other, as a script runs its commands; ends when the socket is shut."""
    while True:
        try:
            asking, _ = listening.accept()
        except OSError:
            return
        with asking:
            _answer(asking)


def _answer(asking: socket.socket) -> None:
    space = socket.CMSG_SPACE(_NUM_STREAMS * array.array("i").itemsize)
    data, ancillary, _, _ = asking.recvmsg(_LARGEST_BYTES, space)
    streams = array.array("i")
    for _, _, payload in ancillary:
        streams.frombytes(payload)
    ask = json.loads(data)
    stdin, stdout, stderr = streams
    process = warm.start(
        ask["arguments"],
        environ=ask["environ"],
        folder=Path(ask["folder"]),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
    )
    for fd in streams:
        os.close(fd)
    asking.send(str(process.wait()).encode())
