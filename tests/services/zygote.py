"""A process that has imported Axon's servers and forks one for whoever asks. Knows no test.

``python -m tests.services.zygote --fd N``, with N a socket to its one caller, ``tests.services.warm``. By a fork,
``axon serve`` with the echo engine starts and ends in 0.4 s of processor time; as ``python -m axon serve`` it takes
2.4 s, nearly all of it imports. The fork runs ``axon`` with the caller's arguments, environment, folder and streams,
and what it starts itself is forked too (``nursery``).
Torch stays outside: only an engine's process may have it.
"""

import argparse
import array
import atexit
import functools
import gc
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer.main

import axon.cli
from axon.gateway.app import routes
from tests.services import replayed_migrations, shared_routes
from tests.services.nursery import Program, open_nursery, renew_streams

_NOT_IMPORTED = (
    "axon.__main__",
    "axon.client",
    "axon.engine.",
    "axon.bootstrap.fronts.front",
    "axon.text.compiler.process",
    "axon.gateway.grpc",  # grpc has threads and must not be forked, and most servers have none of it
    "axon.oip",
    "axon.v1",
    "axon.adapters.store.migrations.",
)
"""Axon's modules that run something, that need what a server may not have, or that no server runs."""
_LATE = (
    *("axon.engine.echo", "axon.engine.encoder.echo", "axon.engine.encoder.engine", "axon.engine.grammar.vocabulary"),
    *("axon.engine.recording", "axon.engine.timeshare.slices"),
    *("aiosqlite", "httptools", "jinja2.ext", "redis.asyncio", "rich._emoji_codes", "typer._adapters"),
    *("uvicorn.lifespan.off", "uvicorn.lifespan.on", "uvicorn.protocols.http.httptools_impl"),
)
"""Modules that a server or an echo engine imports only when it runs."""
_LARGEST_BYTES = 1 << 20
_NUM_DESCRIPTORS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a caller wants run, and the descriptors that came with it."""

    arguments: list[str]
    environ: dict[str, str]
    folder: str
    new_session: bool
    streams: tuple[int, int, int]
    report: int
    """Where the process's number goes, and at its end how ``wait4`` tells of it."""


def serve(control: socket.socket) -> Ask | None:
    """Forks until the caller hangs up. Returns twice, in a way: the ask in each fork, nothing in the end."""
    wake, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    reports: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([control.fileno(), wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
            _report_ends(reports)
        if control.fileno() not in ready:
            continue
        ask = receive(control)
        if ask is None:
            return None
        pid = os.fork()
        if pid == 0:
            return ask
        os.write(ask.report, f"{pid}\n".encode())
        reports[pid] = ask.report
        for fd in ask.streams:
            os.close(fd)


def _report_ends(reports: dict[int, int]) -> None:
    for pid in list(reports):
        ended, status, used = os.wait4(pid, os.WNOHANG)
        if ended:
            report = reports.pop(pid)
            with suppress(BrokenPipeError):  # the caller has forgotten it
                os.write(report, f"{status} {used.ru_utime + used.ru_stime:.3f}\n".encode())
            os.close(report)


def receive(control: socket.socket) -> Ask | None:
    """The next ask; None when the caller has gone."""
    space = socket.CMSG_SPACE(_NUM_DESCRIPTORS * array.array("i").itemsize)
    data, ancillary, _, _ = control.recvmsg(_LARGEST_BYTES, space)
    if not data:
        return None
    fds = array.array("i")
    for level, kind, payload in ancillary:
        assert (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
        fds.frombytes(payload)
    stdin, stdout, stderr, report = fds
    return Ask(**json.loads(data), streams=(stdin, stdout, stderr), report=report)


def become(ask: Ask) -> None:
    """Makes this fork what a process started by the ask would be: its streams, session, folder, environment, path."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if ask.new_session:
        os.setsid()
    for number, fd in enumerate(ask.streams):
        os.dup2(fd, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    renew_streams()
    os.chdir(ask.folder)
    os.environ.clear()
    os.environ.update(ask.environ)
    sys.path[0] = ask.folder
    sys.argv = ["axon", *ask.arguments]
    gc.enable()


def import_servers() -> None:
    """Everything of ours but the engine, and what it imports late."""
    ours = [found.name for found in pkgutil.walk_packages(axon.__path__, "axon.")]
    for name in [*(each for each in ours if not each.startswith(_NOT_IMPORTED)), *_LATE]:
        import_module(name)
    assert "torch" not in sys.modules, "a server must not need torch"
    typer.main.get_command = functools.cache(typer.main.get_command)  # made of every command there is, in 30 ms
    shared_routes.share_routes()
    shared_routes.prepare(routes(""))
    replayed_migrations.replay_migrations()
    replayed_migrations.prepare()
    _prepare(typer.main.get_command(axon.cli.app))


def _prepare(command: Any) -> None:
    """Makes what reads a command's parameters, which would else be made when they are first read: 16 ms of a start."""
    for parameter in command.params:
        if hasattr(parameter, "get_runtime_param"):
            parameter.get_runtime_param()
    for each in getattr(command, "commands", {}).values():
        _prepare(each)


def main() -> Callable[[], object] | None:
    """Imports, then forks; what a fork is to run, or nothing when all is over."""
    parser = argparse.ArgumentParser(prog="zygote")
    parser.add_argument("--fd", type=int, required=True, help="descriptor of the caller's sequenced-packet socket")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-c belongs to the run, which closes the socket
    gc.disable()
    import_servers()
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=parser.parse_args().fd) as control:
        ask = serve(control)
        if ask is None:
            return None
        become(ask)
        control.detach()
    program = Program(module="axon", arguments=ask.arguments)
    while program.starts_others and (child := open_nursery()) is not None:
        program = child
    return lambda: runpy.run_module(program.module, run_name="__main__", alter_sys=True)


def leave(code: object) -> None:
    """Ends a fork as the interpreter would, but for taking every object apart: that would copy the zygote's memory."""
    if isinstance(code, int | None):
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or 0)


if __name__ == "__main__":
    run = main()
    if run is not None:
        try:
            run()
        except SystemExit as ended:
            leave(ended.code)
            raise
