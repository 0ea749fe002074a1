"""A forked ``axon`` is what ``python -m axon`` would be."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.journeys.server import COLD, Server, running
from tests.services import warm

HERE = {**os.environ, "PYTHONPATH": str(warm.SOURCE)}


@pytest.mark.parametrize(
    "arguments", [["config", "show", "--json"], ["config", "show", "--set", "nonsense"], ["bogus"]]
)
def test_it_says_and_returns_what_a_cold_one_does(tmp_path: Path, arguments: list[str]) -> None:
    environ = {**HERE, "AXON_DATA_DIR": "here", "AXON_ENGINE_THREADS": "3"}
    forked = warm.run(arguments, environ=environ, folder=tmp_path)
    command = [sys.executable, "-m", "axon", *arguments]
    cold = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (forked.returncode, forked.stdout, forked.stderr) == (cold.returncode, cold.stdout, cold.stderr)


def test_it_reads_what_it_is_given(tmp_path: Path) -> None:
    said = warm.run(["chat", "--url", "http://127.0.0.1:1"], environ=HERE, folder=tmp_path, said="hello\n")
    assert said.returncode == 1
    assert "127.0.0.1:1" in said.stderr


@pytest.mark.parametrize("cold", [COLD, not COLD])
def test_a_server_has_its_own_streams_folder_and_descriptors(tmp_path: Path, cold: bool) -> None:
    with running(tmp_path / "data", cold, engine_kind="echo") as server:
        with server.client() as http:
            assert http.get("/v1/models").status_code == 200
        assert Path(f"/proc/{server.pid}/cwd").readlink() == tmp_path
        assert not _sockets_of(server) & _sockets_of_this_process()
        assert _is_named(server) is (cold or not warm.enabled())
        assert server.stop(signal.SIGINT) == 0


def test_one_that_is_killed_says_by_which_signal(tmp_path: Path) -> None:
    with running(tmp_path / "data", engine_kind="echo") as server:
        assert server.stop(signal.SIGKILL) == -signal.SIGKILL


def test_waiting_for_one_ends_in_time(tmp_path: Path) -> None:
    with running(tmp_path / "data", engine_kind="echo") as server:
        assert server._process is not None
        assert server._process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            server._process.wait(0.01)


@pytest.mark.parametrize("variable", ["PYTHONDEVMODE", "LC_ALL"])
def test_another_interpreter_is_a_process_of_its_own(tmp_path: Path, variable: str) -> None:
    environ = {**HERE, variable: "C" if variable == "LC_ALL" else "1"}
    with (tmp_path / "out").open("wb") as out:
        process = warm.start(["version", "--json"], environ=environ, folder=tmp_path, stdout=out, stderr=out)
        assert isinstance(process, subprocess.Popen)
        assert process.wait(60) == 0
    assert "axon" in json.loads((tmp_path / "out").read_text())


def test_what_a_person_starts_is_not_forked(tmp_path: Path) -> None:
    program = "from tests.services import warm; print(warm.enabled())"
    done = subprocess.run([sys.executable, "-c", program], cwd=warm.REPOSITORY, capture_output=True, text=True)
    assert done.stdout == "False\n"


def _is_named(server: Server) -> bool:
    """Whether the process's command line is that of ``axon``."""
    return b"axon\0serve" in Path(f"/proc/{server.pid}/cmdline").read_bytes()


def _sockets_of(server: Server) -> set[str]:
    return _sockets(Path(f"/proc/{server.pid}/fd"))


def _sockets_of_this_process() -> set[str]:
    return _sockets(Path("/proc/self/fd"))


def _sockets(folder: Path) -> set[str]:
    targets = set()
    for fd in folder.iterdir():
        try:
            target = str(fd.readlink())
        except OSError:
            continue  # closed since
        if target.startswith("socket:"):
            targets.add(target)
    return targets
