"""Starts the ranks of one host that join another host's group, and restarts them when the group has ended."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import structlog

from axon.bootstrap.models.model import OnProgress, find_folder
from axon.bootstrap.models.preflight import require_engine
from axon.engine.ranks.address import parse
from axon.runtime.clock import Clock, SystemClock
from axon.settings import Settings

_LOOK_S = 0.05
_FIRST_RETRY_S = 0.2
_LONGEST_RETRY_S = 5.0
_LONG_LIFE_S = 30.0
_PATIENCE_S = 86400.0


class Ranks:
    """Child processes, one per rank, which end together and with this process."""

    def __init__(self, model_dir: Path, rendezvous: str, count: int, clock: Clock | None = None) -> None:
        self._model_dir = model_dir
        self._rendezvous = rendezvous
        self._count = count
        self._clock = clock or SystemClock()
        self._logger = structlog.get_logger("axon.ranks")

    @classmethod
    def prepare(cls, settings: Settings, rendezvous: str, count: int, on_progress: OnProgress) -> "Ranks":
        """Finds the model, converting it once if need be; raises ``Misconfigured``."""
        parse(rendezvous)
        require_engine([settings.engine])
        return cls(find_folder(settings, on_progress), rendezvous, count)

    def run(self, stop: threading.Event) -> None:
        """Runs the group again and again, with exponential backoff after short runs, until stopped."""
        wait_s = _FIRST_RETRY_S
        while not stop.is_set():
            started = self._clock.monotonic()
            self._logger.info("ranks.joining", count=self._count, rendezvous=self._rendezvous)
            self._live(stop)
            wait_s = (
                _FIRST_RETRY_S
                if self._clock.monotonic() - started > _LONG_LIFE_S
                else min(2 * wait_s, _LONGEST_RETRY_S)
            )
            stop.wait(wait_s)

    def _live(self, stop: threading.Event) -> None:
        """Runs the processes until the first of them ends."""
        theirs, ours = os.pipe()
        processes = [self._start(index, theirs) for index in range(self._count)]
        os.close(theirs)
        try:
            while not stop.is_set() and all(process.poll() is None for process in processes):
                stop.wait(_LOOK_S)
            codes = [process.returncode for process in processes]
            self._logger.info("ranks.ended", exit_codes=codes)
        finally:
            os.close(ours)
            for process in processes:
                process.kill()
                process.wait()

    def _start(self, index: int, descriptor: int) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-P", "-m", "axon.engine.ranks.rank", "--join", self._rendezvous]
        options = {"--gpu": index, "--model-dir": self._model_dir, "--patience-s": _PATIENCE_S}
        options["--parent-fd"] = descriptor
        words = [str(word) for pair in options.items() for word in pair]
        return subprocess.Popen([*command, *words], stdin=subprocess.DEVNULL, pass_fds=[descriptor])
