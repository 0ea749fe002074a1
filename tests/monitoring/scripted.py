"""The metrics of a worker whose engine has a GPU and drafts tokens, which no fleet of a test has.

The metrics, their declarations and what sets them are the real ones; only the engine's reports are made up.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType

from axon.telemetry.engine_report import EngineReport, WorkerLabels
from axon.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU as an engine sees it."""

    index: int = 0
    utilization: float = 0.8
    memory_bytes: int = 30 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ShelfCounters:
    host_bytes: int = 0
    file_bytes: int = 0
    saved_bytes: int = 0
    loaded_bytes: int = 0
    written_bytes: int = 0
    read_bytes: int = 0
    loaded_tokens: int = 0
    damaged: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What the engine reports after a step."""

    drafted: int
    accepted: int
    num_running: int = 4
    num_waiting: int = 0
    batch_tokens: int = 16
    blocks_free: int = 100
    blocks_used: int = 50
    blocks_cached: int = 50
    preemptions: int = 0
    yielded: int = 0
    running_by_priority: Mapping[int, int] = field(default_factory=dict)
    sent_bytes: int = 0
    step_s: float = 0.02
    gpus: Sequence[Gpu] = (Gpu(),)
    shelf: ShelfCounters | None = None
    adapters_loaded: int = 0
    adapters_dropped: int = 0


class ScriptedWorker:
    """A step every 200 ms, and a port on which its metrics are scraped."""

    def __init__(self) -> None:
        self._metrics = Metrics()
        self._report = EngineReport(self._metrics, WorkerLabels("large", "large@v1", "gpu-worker", "a"))
        self.port, self._close = self._metrics.serve("127.0.0.1", 0)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "ScriptedWorker":
        self._report.began(num_slots=8, num_blocks=200)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.set()
        self._thread.join()
        self._close()

    def _run(self) -> None:
        steps = 0
        while not self._ends.wait(0.2):
            steps += 1
            moved = ShelfCounters(
                host_bytes=1 << 30,
                file_bytes=4 << 30,
                saved_bytes=steps << 20,
                loaded_bytes=steps << 19,
                written_bytes=steps << 20,
                read_bytes=steps << 19,
                loaded_tokens=64 * steps,
            )
            self._report.stepped(Counters(drafted=10 * steps, accepted=7 * steps, shelf=moved), 4)
