"""A real server process for journeys: started as a user starts it, on free ports and a folder of its own."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO
from urllib.parse import urlsplit

import httpx

from tests.services import warm
from tests.services.process import pauses
from tests.services.reaper import adopt

REPOSITORY = Path(__file__).resolve().parents[2]
MODELS = REPOSITORY / ".cache" / "models"
START_S = 90.0
_ONE = {"gateway_port": 0, "gateway_metrics_port": 0, "gateway_processes": 1}
"""One process on free ports, however many cores there are."""
COLD = True
"""For a server that is not forked from a warm process: the test is about its start."""


def wait_until(true: Callable[[], object], what: str, timeout_s: float = 60.0) -> None:
    """Waits for the thing itself, not for a time."""
    deadline = time.monotonic() + timeout_s
    for pause_s in pauses():
        if true():
            return
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what}"
        time.sleep(pause_s)


def engines_under(pid: int) -> list[int]:
    """The engines among the process's children, of which any may end meanwhile."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [child for child in map(int, children) if _name_of(child) == "axon-engine"]


def _name_of(pid: int) -> str:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


class Server:
    """``axon serve`` in a process of its own."""

    def __init__(self, data_dir: Path, cold: bool = False, /, **settings: object) -> None:
        self.data_dir = data_dir
        self._cold = cold
        self.log_path = data_dir.with_name(data_dir.name + ".log")
        self._settings = {**_ONE, "models_dir": MODELS, **settings}
        self._process: warm.Process | None = None
        self._stdout: TextIO | None = None
        self.url = self.metrics_url = self.screen = ""

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def key(self) -> str:
        return (self.data_dir / "dev-key").read_text().strip()

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    @property
    def environment(self) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("AXON_")}
        own = {f"AXON_{name.upper()}": str(value) for name, value in self._settings.items()}
        return {**clean, "AXON_DATA_DIR": str(self.data_dir), "PYTHONPATH": str(REPOSITORY / "src"), **own}

    def start(self) -> "Server":
        screen, printed = os.pipe()
        self._stdout = os.fdopen(screen)
        with self.log_path.open("a") as log, os.fdopen(printed, "wb") as stdout:
            self._process = warm.start(
                ["serve"],
                environ=self.environment,
                folder=self.data_dir.parent,
                stdout=stdout,
                stderr=log,
                cold=self._cold,
            )
        adopt(self._process.pid)
        self._read_screen()
        return self

    def _read_screen(self) -> None:
        assert self._stdout is not None
        lines = []
        for line in self._stdout:
            lines.append(line)
            if "stops the server" in line:
                break
        self.screen = "".join(lines)
        found = re.search(r"(http://\S+)/v1", self.screen)
        assert found, f"the server did not come up:\n{self.screen}\n{self.log}"
        self.url = found[1]
        metrics = re.search(r"(http://\S+/metrics)", self.screen)
        assert metrics
        self.metrics_url = metrics[1]

    def engine_pids(self) -> list[int]:
        return engines_under(self.pid)

    def stop(self, number: int = signal.SIGTERM, timeout_s: float = 60.0) -> int:
        """Sends the signal and returns the exit code."""
        if self._process is None:
            return 0
        if self._process.poll() is None:
            self._process.send_signal(number)
        code = self._process.wait(timeout_s)
        assert self._stdout is not None
        self._stdout.close()
        return code

    def kill(self) -> None:
        """The whole process tree at once, as a power cut would."""
        engines = self.engine_pids()
        self.stop(signal.SIGKILL)
        for pid in engines:
            wait_until(lambda pid=pid: not _alive(pid), "the engine goes with its worker")  # type: ignore[misc]

    def start_again(self) -> "Server":
        """On the same port, as a supervisor would."""
        self._settings["gateway_port"] = urlsplit(self.url).port
        return self.start()

    def axon(self, *arguments: str, said: str = "") -> subprocess.CompletedProcess[str]:
        """A command beside it, with its settings; ``said`` is what it reads."""
        return warm.run(arguments, environ=self.environment, folder=self.data_dir.parent, said=said)

    def client(self, **arguments: object) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.key}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, **arguments)  # type: ignore[arg-type]

    def metric(self, name: str) -> float:
        """The sum of a metric's samples."""
        return metric_of(self.metrics_url, name)


def metric_of(url: str, name: str) -> float:
    """The sum of a metric's samples; the name may go on as a regular expression.

    The server is asked for this metric alone first: to write them all takes it 15 ms of processor time.
    """
    [bare] = re.findall(r"^[\w:]+", name)
    for asked in ({"name[]": bare}, {}):
        text = httpx.get(url, params=asked, headers={"Accept-Encoding": "identity"}, timeout=60).text
        lines = [line for line in text.splitlines() if re.match(rf"{name}(\{{|\s)", line)]
        if lines:
            break
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@contextmanager
def standing_still(server: Server) -> Iterator[None]:
    """The engine says nothing for the length of a block, however long that takes; then it goes on.

    A server is not killed meanwhile: its engine ends when it sees that its worker has gone, which it cannot.
    ``worker_step_timeout_s`` is the length after which a worker takes its engine for hung.
    """
    [engine] = server.engine_pids()
    os.kill(engine, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(engine, signal.SIGCONT)


@contextmanager
def running(data_dir: Path, cold: bool = False, /, **settings: object) -> Iterator[Server]:
    """A server for the length of a block; it must end cleanly unless the test has ended it."""
    server = Server(data_dir, cold, **settings)
    try:
        yield server.start()
    finally:
        code = server.stop()
    assert code in (0, -signal.SIGKILL), f"the server ended with {code}:\n{server.log[-3000:]}"
