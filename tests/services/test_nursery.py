"""What a forked server starts is its child, and is what an interpreter of its own would be."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.journeys.processes import front_pids, is_alive
from tests.journeys.server import Server, running, wait_until
from tests.services import nursery


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The commands that were started cold."""
    commands: list[tuple[str, ...]] = []

    async def start(*command: str, **how: object) -> None:
        commands.append(command)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    monkeypatch.setattr(os, "posix_spawn", lambda path, command, environ, **how: commands.append(tuple(command)))
    return commands


def children(server: Server) -> set[int]:
    return set(map(int, Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()))


def test_fronts_and_engines_are_children_of_their_server_and_serve(tmp_path: Path) -> None:
    with running(tmp_path / "data", engine_kind="echo", gateway_processes=2) as server:
        fronts, [engine] = front_pids(server.pid), server.engine_pids()
        assert len(fronts) == 2
        for pid in (*fronts, engine):
            assert Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"python\0-m\0"), "it was forked"
            assert Path(f"/proc/{pid}/cwd").readlink() == tmp_path
            assert os.getsid(pid) == pid, "a session of its own"
        with server.client() as http:
            assert http.post("/v1/completions", json={"model": "echo", "prompt": "hi"}).status_code == 200


def test_one_that_is_killed_is_replaced_by_its_server(tmp_path: Path) -> None:
    with running(tmp_path / "data", engine_kind="echo") as server:
        [engine] = server.engine_pids()
        os.kill(engine, signal.SIGKILL)
        wait_until(lambda: server.engine_pids() not in ([], [engine]), "there is another engine")
        assert engine not in children(server), "nobody has waited for the first one"


def test_a_nursery_goes_with_its_server(tmp_path: Path) -> None:
    with running(tmp_path / "data", engine_kind="echo") as server:
        all_of_them = children(server)
        server.kill()
        wait_until(lambda: not any(map(is_alive, all_of_them)), "all its processes are gone")


def test_only_servers_have_one() -> None:
    def starts_others(*arguments: str) -> bool:
        return nursery.Program(module="axon", arguments=list(arguments)).starts_others

    assert starts_others("serve")
    assert starts_others("worker", "--name", "one")
    assert not starts_others("keys", "list")
    assert not starts_others()
    assert not nursery.Program(module="axon.engine.process", arguments=["serve"]).starts_others


@pytest.mark.parametrize(
    ("command", "variable"),
    [
        (["sh", "-c", "true"], ""),
        ([sys.executable, "-c", "pass"], ""),
        ([sys.executable, "-P", "-m", "http.server"], ""),
        ([sys.executable, "-P", "-m", "axon.engine.process"], ""),
        ([sys.executable, "-P", "-m", "axon", "worker"], "PYTHONDEVMODE"),
    ],
)
def test_what_is_not_axons_or_needs_another_interpreter_is_started_cold(
    started: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch, command: list[str], variable: str
) -> None:
    ours, theirs = nursery.connected()
    with ours, theirs:
        nursery.Nursery(ours).install()
        if variable:
            monkeypatch.setenv(variable, "1")
        os.posix_spawn(command[0], command, os.environ, setsid=True)
        asyncio.run(asyncio.create_subprocess_exec(*command, start_new_session=True))
    assert started == [tuple(command)] * 2


def test_descriptors_get_the_numbers_by_which_they_are_asked_for() -> None:
    """In a fork, for it closes all others."""
    first, second, told = os.pipe(), os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            nursery.place_descriptors({0: first[0], 1: 1, 2: 2, second[1]: first[1], first[1]: second[1], 9: told[1]})
            os.write(second[1], b"to the first")
            os.write(9, os.read(0, 64) + b", and no more" * (not Path("/proc/self/fd/100").exists()))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(told[0], 64) == b"to the first, and no more"
    for fd in (*first, *second, *told):
        os.close(fd)
