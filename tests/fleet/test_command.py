"""``make fleet``: what it refuses, that it says who has ended, and that it can be stopped at any time."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.journeys.server import REPOSITORY
from tests.services.process import listening, wait_for
from tests.services.require import require

pytestmark = pytest.mark.services


class Command:
    """``python -m tests.fleet`` in a folder of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        require("redis-server", "rabbitmq-server", "postgres", "nginx")
        self.folder = folder / "fleet"
        self._output = folder / "output"
        command = [sys.executable, "-m", "tests.fleet", "--dir", str(self.folder), *arguments]
        with self._output.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=REPOSITORY, stdout=log, stderr=log)

    @property
    def output(self) -> str:
        return self._output.read_text()

    def wait_for(self, text: str) -> None:
        wait_for(lambda: text in self.output or self.process.poll() is not None, text, 180.0)
        assert text in self.output, self.output

    def pid(self, member: str) -> int:
        """As the screen tells it."""
        line = re.search(rf"^  {member} .*\(process (\d+)\)$", self.output, re.MULTILINE)
        assert line is not None, self.output
        return int(line.group(1))

    def starts(self, role: str) -> bool:
        """Whether one of these has come as far as to answer its probes."""
        port = re.compile(rf"\bAXON_{role.upper()}_METRICS_PORT=(\d+)\b")
        found = (port.search(_environment(each)) for each in self.left_behind)
        return any(listening(int(each.group(1))) for each in found if each)

    @property
    def left_behind(self) -> list[Path]:
        """The processes that are at home in its folder."""
        return [each for each in Path("/proc").glob("[0-9]*") if _home(each).is_relative_to(self.folder)]


@pytest.fixture
def folder() -> Iterator[Path]:
    # Not below pytest's own folder, which is shut to the user that the services run as.
    with tempfile.TemporaryDirectory(prefix="axon-fleet-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[Command]:
    command = Command(folder, *arguments)
    try:
        yield command
    finally:
        command.process.kill()
        command.process.wait()
        wait_for(lambda: not command.left_behind, "the reaper has ended what was left")


@pytest.mark.long("make fleet")
@pytest.mark.parametrize(
    "arguments", [("--workers", "0"), ("--gateways", "0"), ("--workers", "-1"), ("--port", "70000")]
)
def test_numbers_that_make_no_fleet_are_refused(folder: Path, arguments: tuple[str, str]) -> None:
    option, value = arguments
    with started(folder, *arguments) as command:
        assert command.process.wait(60.0) == 2
        assert f"argument {option}: '{value}' is not a number from" in command.output
        assert not command.folder.exists()


def test_a_port_that_somebody_has_is_refused_before_anything_is_started(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with started(folder, "--engine", "echo", "--port", str(port)) as command:
            assert command.process.wait(60.0) == 2
            assert command.output == f"Port {port} is in use\n"
            assert not command.folder.exists()


@pytest.mark.long("make fleet")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_is_stopped_while_a_worker_does_not_get_ready(folder: Path, number: signal.Signals) -> None:
    os.mkfifo(model := folder / "model.gguf")  # nobody writes to it: whoever reads it waits
    one_each = ("--workers", "1", "--gateways", "1")
    with started(folder, *one_each, "--model", str(model), "--model-name", "slow") as command:
        wait_for(lambda: command.starts("worker"), "the worker answers that it starts", 180.0)
        command.process.send_signal(number)
        assert command.process.wait(60.0) == 0
        assert command.output.endswith("Stopping\n")
        assert command.left_behind == []


@pytest.mark.long("make fleet")
def test_it_says_which_of_its_processes_ended_and_how(folder: Path) -> None:
    with started(folder, "--engine", "echo") as command:
        command.wait_for("ctrl-c stops everything")
        os.kill(command.pid("worker-1"), signal.SIGKILL)
        command.wait_for("\nworker-1 ended (signal 9)\n")
        os.kill(command.pid("worker-2"), signal.SIGTERM)
        command.wait_for("\nworker-2 ended (exit 0)\n")
        assert "worker.stopped" in command.output
        command.process.send_signal(signal.SIGINT)
        assert command.process.wait(60.0) == 0
        assert command.output.count(" ended (") == 2
        assert command.left_behind == []


def _home(process: Path) -> Path:
    try:
        return (process / "cwd").readlink()
    except OSError:
        return Path("/")  # it has just ended


def _environment(process: Path) -> str:
    try:
        return (process / "environ").read_text(errors="replace")
    except OSError:
        return ""
