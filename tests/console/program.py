"""The program ``axon``, run as a person at a shell runs it: with a folder of its own, warm, cold or on a terminal."""

import codecs
import os
import re
import select
import signal
import subprocess
import sys
import termios
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
    def on_a_terminal(self, *arguments: str, size: tuple[int, int] | None = None, **environ: str) -> Iterator["Typed"]:
        """``size`` is in columns and lines."""
        master, slave = os.openpty()
        if size is not None:
            termios.tcsetwinsize(slave, (size[1], size[0]))
        command = [sys.executable, "-m", "axon", *arguments]
        with _interruptible():
            process = subprocess.Popen(
                command, cwd=self._folder, env=self._environ(environ), stdin=slave, stdout=slave, stderr=slave
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
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._seen = ""
        self.passed = ""
        """What came before the text that was waited for last."""

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, text: str) -> None:
        """Reads until the text has come; what came before it is forgotten."""
        self.wait_like(re.escape(text))

    def wait_like(self, pattern: str) -> re.Match[str]:
        """The same with a regular expression."""
        deadline = time.monotonic() + 60
        while (found := re.search(pattern, self._seen)) is None:
            ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{pattern!r} did not come, only {self._seen!r}"
            self._seen += self._decoder.decode(os.read(self._master, 4096))
        self.passed, self._seen = self._seen[: found.start()], self._seen[found.end() :]
        return found

    @property
    def modes(self) -> list[object]:
        """The terminal's modes: how it gives keys to its program."""
        return termios.tcgetattr(self._master)

    def resize(self, columns: int, lines: int) -> None:
        """Makes the terminal's window another size, and tells the program, as the terminal would."""
        termios.tcsetwinsize(self._master, (lines, columns))
        self.process.send_signal(signal.SIGWINCH)
