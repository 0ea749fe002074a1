"""Forks the processes that a forked server starts: fronts, echo engines, compilers, a control's workers. Knows no test.

    while program.starts_others and (child := open_nursery()) is not None:
        program = child

A server that was forked from the zygote would start an interpreter for each of them, which spends 1 to 2 s of processor
time on imports. So it has a nursery: a process that was forked before the server ran anything and still is what the
zygote was. What it forks becomes a child of the server, as a started process would be: the server waits for it, signals
it and finds it in ``/proc``.
"""

import array
import asyncio
import ctypes
import fcntl
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

_STARTING_OTHERS = ("serve", "gateway", "worker", "control")
_FRONT, _ENGINE = "axon.bootstrap.fronts.front", "axon.engine.process"
_QUICK = ("axon", _FRONT, "axon.text.compiler.process")
_OF_THE_INTERPRETER = ("PYTHON", "LC_", "LANG")
COLD_STARTS = "TEST_COLD_STARTS"
"""Variable of a test that is about how long processes take to start: none of its servers' is forked."""
_LARGEST_BYTES = 1 << 20
_MOST_DESCRIPTORS = 16
_ABOVE = 1 << 9
"""Descriptors from here on are nobody's target."""
_PR_SET_CHILD_SUBREAPER = 36
_ARG_START = 45
"""Place of the command line's first address among the fields of ``/proc/self/stat`` behind the command's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A module to be run as ``python -m`` would run it."""

    module: str
    arguments: list[str]

    @property
    def starts_others(self) -> bool:
        return self.module == "axon" and self.arguments[:1] != [] and self.arguments[0] in _STARTING_OTHERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Birth:
    """A process that a server wants: its descriptors have these numbers there."""

    program: Program
    environ: dict[str, str]
    folder: str
    descriptors: list[int]
    new_session: bool


def open_nursery() -> Program | None:
    """Forks the nursery of this process and has it used from now on. Returns twice, in a way: nothing here, and in each
    process that the nursery forks what that is to run."""
    ours, theirs = connected()
    if os.fork() == 0:
        ours.close()
        return _tend(theirs)
    theirs.close()
    Nursery(ours).install()
    return None


def connected() -> tuple[socket.socket, socket.socket]:
    """A server's end and its nursery's."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for each in (ours, theirs):
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LARGEST_BYTES)
    return ours, theirs


class Nursery:
    """The nursery as its server sees it."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._lock = threading.Lock()
        self._environ = dict(os.environ)
        self._start_cold, self._spawn_cold = asyncio.create_subprocess_exec, os.posix_spawn

    def install(self) -> None:
        asyncio.create_subprocess_exec = self._start  # type: ignore[assignment]
        os.posix_spawn = self._spawn  # type: ignore[assignment]

    async def _start(
        self,
        *command: str,
        pass_fds: Sequence[int] = (),
        start_new_session: bool = False,
        env: Mapping[str, str] | None = None,
        **more: Any,
    ) -> "asyncio.subprocess.Process | _Child":
        environ = os.environ if env is None else env
        program = self._program(command, environ)
        if program is None or more:
            how = {"pass_fds": pass_fds, "start_new_session": start_new_session, "env": env, **more}
            return await self._start_cold(*command, **how)
        return _Child(self._born(program, environ, {fd: fd for fd in (0, 1, 2, *pass_fds)}, start_new_session))

    def _spawn(self, path: str, argv: Sequence[str], env: Mapping[str, str], **how: Any) -> int:
        program = self._program(argv, env)
        if program is None or not how.get("setsid"):
            return self._spawn_cold(path, list(argv), env, **how)
        streams: dict[int, int] = {}
        try:
            for action, fd, *rest in how["file_actions"]:
                if action == os.POSIX_SPAWN_OPEN:
                    streams[fd] = os.open(*rest)
                else:
                    streams[rest[0]] = os.dup(streams[fd])
            return self._born(program, env, streams, new_session=True)
        finally:
            for fd in streams.values():
                os.close(fd)

    def _program(self, command: Sequence[str], environ: Mapping[str, str]) -> Program | None:
        """What the command runs, if it is of ours and this interpreter will do."""
        if list(command[:3]) != [sys.executable, "-P", "-m"] or _interpreter(environ) != _interpreter(self._environ):
            return None
        if _customized(environ) or self._environ.get(COLD_STARTS):
            return None
        module, arguments = command[3], list(command[4:])
        is_quick = module in _QUICK or (module == _ENGINE and environ.get("AXON_ENGINE_KIND") == "echo")
        return Program(module=module, arguments=arguments) if is_quick else None

    def _born(self, program: Program, environ: Mapping[str, str], fds: Mapping[int, int], new_session: bool) -> int:
        """The pid of the new child; ``fds`` has ours by theirs."""
        birth = Birth(
            program=program,
            environ=dict(environ),
            folder=os.getcwd(),
            descriptors=list(fds),
            new_session=new_session,
        )
        with self._lock:
            _adopt_orphans(True)
            try:
                rights = array.array("i", fds.values())
                self._control.sendmsg(
                    [json.dumps(asdict(birth)).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
                )
                said = [self._control.recv(64) for _ in range(2)]
            finally:
                _adopt_orphans(False)
        if not all(said):
            raise OSError("the nursery has gone")
        return int(said[0])


class _Child:
    """A child of this process, with what Axon needs of ``asyncio.subprocess.Process``."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        self._descriptor = os.pidfd_open(pid)
        self._loop.add_reader(self._descriptor, self._wait)

    def _wait(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        _, status = os.waitpid(self.pid, 0)
        self.returncode = os.waitstatus_to_exitcode(status)
        self._ended.set_result(None)

    async def wait(self) -> int:
        await asyncio.shield(self._ended)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is not None:
            raise ProcessLookupError
        os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _tend(control: socket.socket) -> Program:
    """Forks until the server hangs up; returns in each fork."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # they are for the server
    while True:
        birth, fds = _receive(control)
        between = os.fork()
        if between == 0:
            pid = os.fork()
            if pid == 0:
                _become(birth, fds)
                return birth.program
            control.send(str(pid).encode())
            os._exit(0)  # an orphan is adopted by the server
        os.waitpid(between, 0)
        for fd in fds:
            os.close(fd)
        control.send(b"adopted")


def _receive(control: socket.socket) -> tuple[Birth, list[int]]:
    space = socket.CMSG_SPACE(_MOST_DESCRIPTORS * array.array("i").itemsize)
    data, ancillary, _, _ = control.recvmsg(_LARGEST_BYTES, space)
    if not data:
        _end()
    fds = array.array("i")
    for _, _, payload in ancillary:
        fds.frombytes(payload)
    said = json.loads(data)
    return Birth(**{**said, "program": Program(**said["program"])}), list(fds)


def _end() -> NoReturn:
    os._exit(0)


def _become(birth: Birth, fds: Sequence[int]) -> None:
    """Makes this fork what an interpreter that was started so would be."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if birth.new_session:
        os.setsid()
    place_descriptors(dict(zip(birth.descriptors, fds, strict=True)))
    renew_streams()
    os.chdir(birth.folder)
    os.environ.clear()
    os.environ.update(birth.environ)
    sys.path[0] = birth.folder
    sys.argv = [birth.program.module, *birth.program.arguments]
    _show(["python", "-m", birth.program.module, *birth.program.arguments])


def place_descriptors(fds: Mapping[int, int]) -> None:
    """Gives this process's descriptors these numbers, by which they are asked for, and closes all others."""
    above = {number: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _ABOVE) for number, fd in fds.items()}
    os.closerange(3, _ABOVE)
    for number, fd in above.items():
        os.dup2(fd, number)
    os.closerange(_ABOVE, os.sysconf("SC_OPEN_MAX"))


def renew_streams() -> None:
    """The interpreter's own streams, over descriptors that have changed."""
    sys.stdin = open(0, encoding="utf-8", errors="strict", closefd=False)  # noqa: SIM115 - as the interpreter has them
    sys.stdout = open(1, "w", encoding="utf-8", errors="strict", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115


def _show(command: Sequence[str]) -> None:
    """Sets the command line that ``/proc`` and ``ps`` show, as far as there is room for it."""
    fields = Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()
    start, end = map(int, fields[_ARG_START : _ARG_START + 2])
    room = end - start - 1
    text = b"\0".join(map(str.encode, command))[:room]
    ctypes.memmove(start, text.ljust(room, b"\0"), room)


def _interpreter(environ: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value for name, value in environ.items() if name.startswith(_OF_THE_INTERPRETER) and name != "PYTHONPATH"
    }


def _customized(environ: Mapping[str, str]) -> bool:
    """Whether an interpreter would begin with code of a test's own: what was forked does not begin."""
    path = environ.get("PYTHONPATH", "").split(os.pathsep)
    return any((Path(folder) / "sitecustomize.py").exists() for folder in path if folder)


def _adopt_orphans(is_on: bool) -> None:
    """Whether processes whose parent ends become this one's children."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(is_on), 0, 0, 0)
