"""Child processes: a start that is cancelled or fails leaves nothing behind, and clients' text meets no secrets."""

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import pytest

import axon
from axon.runtime.child import launch_module, plain_environment
from axon.sessions.compiler import Compiler
from axon.text.compiler.messages import Task
from axon.worker.child.process import launch


class Started:
    """What was made for processes since the test began."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.processes: list[asyncio.subprocess.Process] = []
        self.sockets: list[socket.socket] = []
        start, pair = asyncio.create_subprocess_exec, socket.socketpair

        async def noted(*arguments: Any, **options: Any) -> asyncio.subprocess.Process:
            self.processes.append(await start(*arguments, **options))
            return self.processes[-1]

        def noted_pair() -> tuple[socket.socket, socket.socket]:
            self.sockets += pair()
            return self.sockets[-2], self.sockets[-1]

        monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
        monkeypatch.setattr(socket, "socketpair", noted_pair)

    @property
    def are_gone(self) -> bool:
        ended = all(each.returncode is not None for each in self.processes)
        return ended and all(each.fileno() == -1 for each in self.sockets)


@pytest.fixture
async def started(monkeypatch: pytest.MonkeyPatch) -> Started:  # async: the loop has its own pair of sockets by then
    return Started(monkeypatch)


async def _compiler() -> None:
    await launch_module("axon.text.compiler.process", lambda fd: (str(fd), "1"), has_secrets=False)


async def _engine() -> None:
    await launch()


@pytest.mark.parametrize("begin", [_compiler, _engine])
async def test_a_start_that_is_cancelled_leaves_no_process_and_no_socket(
    started: Started, begin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    connecting = asyncio.Event()

    async def never(**_: Any) -> None:
        connecting.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio, "open_connection", never)
    descriptors = len(os.listdir("/proc/self/fd"))
    starting = asyncio.create_task(begin())
    await asyncio.wait_for(connecting.wait(), 60)
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    assert starting.cancelled()
    assert len(started.processes) == 1
    assert started.are_gone
    await asyncio.sleep(0)  # the loop closes what it had of the process
    assert len(os.listdir("/proc/self/fd")) <= descriptors


async def test_a_connection_that_fails_leaves_no_process_and_no_socket(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(**_: Any) -> None:
        raise OSError("no memory")

    monkeypatch.setattr(asyncio, "open_connection", fails)
    with pytest.raises(OSError, match="no memory"):
        await _compiler()
    assert started.are_gone


async def test_the_compiler_of_clients_grammars_has_none_of_the_gateways_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AXON_STORE_URL", "postgresql://user:secret@db/axon")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    compiler = Compiler()
    try:
        await compiler.run(Task(kind="regex", text="a"))
        environment = await asyncio.to_thread(Path(f"/proc/{compiler.pid}/environ").read_bytes)
    finally:
        await compiler.aclose()
    assert b"PATH=" in environment
    assert b"secret" not in environment


@pytest.mark.parametrize("has_secrets", [False, True])
async def test_a_child_imports_nothing_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_secrets: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "planted_here.py").write_text("raise SystemExit(7)")
    child = await launch_module("planted_here", lambda fd: (), has_secrets=has_secrets)
    child.writer.close()
    assert await child.process.wait() == 1, "there is no such module"


def test_every_process_of_ours_is_started_without_the_working_directory_on_its_path() -> None:
    source = Path(axon.__file__).parent
    started = [
        line.strip() for file in source.rglob("*.py") for line in file.read_text().splitlines() if '"-m", ' in line
    ]
    shown = [line for line in started if line == 'return [sys.executable, "-m", "axon"]']  # words for people to type
    assert len(shown) == 1
    assert len(started) > 4
    assert all('"-P", "-m", ' in line for line in started if line not in shown)


def test_a_plain_environment_has_what_python_and_its_coverage_need() -> None:
    needed = {"PATH": "/bin", "PYTHONPATH": "src", "LC_ALL": "C", "COVERAGE_PROCESS_START": "x", "COV_CORE_SOURCE": ""}
    assert plain_environment({**needed, "AXON_LOG_URL": "redis://", "PGPASSWORD": "x"}) == needed
