"""The program ``axon``, run as a person at a shell runs it: with a folder of its own, warm, cold or on a terminal."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services import warm

SOURCE = Path(__file__).resolve().parents[2] / "src"


class Axon:
    """The program, run as a person does, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, *arguments: str, stdin: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
        return warm.run(arguments, environ=self._environ(environ), folder=self._folder, said=stdin)

    def cold(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """By an interpreter of its own, which has imported nothing."""
        command = [sys.executable, "-m", "axon", *arguments]
        return subprocess.run(
            command, cwd=self._folder, env=self._environ({}), capture_output=True, text=True, timeout=60
        )

    @contextmanager
    def on_a_terminal(self, *arguments: str) -> Iterator["Typed"]:
        master, slave = os.openpty()
        command = [sys.executable, "-m", "axon", *arguments]
        with _interruptible():
            process = subprocess.Popen(
                command, cwd=self._folder, env=self._environ({}), stdin=slave, stdout=slave, stderr=slave
            )
        with process:
            os.close(slave)
            try:
                yield Typed(process, master)
            finally:
                process.kill()
                os.close(master)

    def _environ(self, more: dict[str, str]) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("AXON_")}
        return inherited | {"PYTHONPATH": str(SOURCE), "AXON_DATA_DIR": str(self._folder / "data")} | more


@contextmanager
def _interruptible() -> Iterator[None]:
    """Gives a child SIGINT's default action: a test run in the background ignores SIGINT, and children inherit that.

    A handler does not outlive exec; only SIG_IGN does.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Typed:
    """A program at a terminal, and the person in front of it."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self._master = master
        self._seen = ""
        self.passed = ""
        """What came before the text that was waited for last."""

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, text: str) -> None:
        """Reads until the text has come; what came before it is forgotten."""
        deadline = time.monotonic() + 30
        while text not in self._seen:
            ready, _, _ = select.select([self._master], [], [], deadline - time.monotonic())
            assert ready, f"{text!r} did not come, only {self._seen!r}"
            self._seen += os.read(self._master, 4096).decode()
        self.passed, _, self._seen = self._seen.partition(text)
