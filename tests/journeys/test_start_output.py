"""What a starting server writes: a screen and lines for people on a terminal, nothing but JSON lines in one file."""

import json
import os
import pty
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from axon.console.serving.screen import shows_banner
from tests.services import warm
from tests.services.process import wait_for
from tests.services.reaper import adopt

SETTINGS = {"ENGINE_KIND": "echo", "GATEWAY_PORT": "0", "GATEWAY_METRICS_PORT": "0", "GATEWAY_PROCESSES": "1"}


def _started(folder: Path, stream: int) -> warm.Process:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AXON_")}
    environ = {**clean, "AXON_DATA_DIR": str(folder / "data"), **{f"AXON_{k}": v for k, v in SETTINGS.items()}}
    process = warm.start(["serve"], environ=environ, folder=folder, stdout=stream, stderr=stream)
    adopt(process.pid)
    return process


class Terminal:
    """A terminal, and all that was written to it."""

    def __init__(self) -> None:
        self._master, self.end = pty.openpty()
        self.text = ""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            while data := os.read(self._master, 4096):
                self.text += data.decode(errors="replace")
        except OSError:
            return  # the last process that had it open has closed it

    def close(self) -> None:
        os.close(self.end)
        self._thread.join(60)
        os.close(self._master)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    terminal = Terminal()
    yield terminal
    terminal.close()


def test_on_a_terminal_the_screen_is_whole_and_no_line_is_json(tmp_path: Path, terminal: Terminal) -> None:
    process = _started(tmp_path, terminal.end)
    wait_for(lambda: "stops the server" in terminal.text, "the screen is there", 120)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    wait_for(lambda: "worker.stopped" in terminal.text, "the last line is there", 60)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.text)
    assert '{"ts"' not in text
    screen = text[text.index("  Axon ") : text.index("ctrl-c stops the server")]
    assert "[info" not in screen, "no log line runs into the screen"
    assert re.search(r"\d\d:\d\d:\d\d \[info +\] worker\.stopped", text)


def test_where_stdout_and_stderr_are_one_file_every_line_is_json(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as log:
        process = _started(tmp_path, log.fileno())
    wait_for(lambda: "process.ready" in path.read_text(), "it is ready", 120)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    events = [line["event"] for line in lines if "event" in line]
    assert events[0] == "process.starting"
    [ready] = [line for line in lines if line.get("event") == "process.ready"]
    assert ready["key_file"] == str(tmp_path / "data" / "dev-key")
    assert (tmp_path / "data" / "dev-key").read_text().strip() not in path.read_text()


@pytest.mark.parametrize(
    ("banner", "writes_json", "is_one_file", "shown"),
    [
        ("auto", False, True, True),
        ("auto", False, False, True),
        ("auto", True, False, True),
        ("auto", True, True, False),
        ("never", False, False, False),
    ],
)
def test_the_screen_is_shown_unless_it_would_stand_between_json_lines(
    banner: str, writes_json: bool, is_one_file: bool, shown: bool
) -> None:
    assert shows_banner(banner, writes_json=writes_json, is_one_file=is_one_file) is shown
