"""The workers that a fleet's control has launched on this machine: their files, and their end with the test."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from axon.adapters.launch.system import ProcessId, is_alive
from tests.journeys.server import wait_until
from tests.services.reaper import adopt

_END_S = 30.0


def processes(data_dir: Path) -> dict[str, ProcessId]:
    """The process of each launched replica that has one, by the replica's name."""
    found: dict[str, ProcessId] = {}
    for path in sorted((data_dir / "replicas").glob("*.json")):
        with suppress(FileNotFoundError):  # it has ended meanwhile
            record = json.loads(path.read_text())
            if record["process"] is not None:
                found[record["name"]] = ProcessId(**record["process"])
    return {name: each for name, each in found.items() if is_alive(each)}


def watched(data_dir: Path) -> dict[str, ProcessId]:
    """The same; they are to end with this process, however that ends."""
    found = processes(data_dir)
    for each in found.values():
        adopt(each.pid)
    return found


def end(data_dir: Path) -> None:
    """Tells every launched replica to drain, waits, and kills those that do not end. For when no control runs."""
    found = processes(data_dir).values()
    for each in found:
        _send(each, signal.SIGTERM)
    try:
        wait_until(lambda: not any(map(is_alive, found)), "the launched workers have drained", _END_S)
    finally:
        for each in found:
            _send(each, signal.SIGKILL)


@contextmanager
def paused(process: ProcessId) -> Iterator[None]:
    """The process stands still, as one whose start takes long."""
    _send(process, signal.SIGSTOP)
    try:
        yield
    finally:
        _send(process, signal.SIGCONT)


def _send(process: ProcessId, number: int) -> None:
    if is_alive(process):
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)
