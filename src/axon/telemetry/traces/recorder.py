"""Takes spans from the event loop and exports them in a thread. A collector that is away costs spans, nothing else.

The queue is bounded: what does not fit is dropped and counted. Nothing here raises into the code that is traced.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence

import structlog

from axon.domain.tracing.span import Span
from axon.telemetry.config import TracesConfig

Export = Callable[[Sequence[Span]], bool]
"""Sends spans to the collector; returns whether it took them."""
Counted = Callable[[str, int], None]
"""Counts spans: ``exported``, or ``lost`` to a full queue or a collector that did not take them."""

_BATCH = 512
"""Spans of one export."""

_logger = structlog.get_logger("axon.traces")


class Recorder:
    """``add`` from any thread, ``close`` at the end."""

    def __init__(
        self,
        config: TracesConfig,
        export: Export,
        count: Counted,
        *,
        close_export: Callable[[], None] = lambda: None,
    ) -> None:
        self.config, self._close_export = config, close_export
        self._export, self._count = export, count
        self._waiting: deque[Span] = deque()
        self._lock = threading.Lock()
        self._wake, self._closing = threading.Event(), threading.Event()
        self._is_failing = False
        self._thread = threading.Thread(target=self._run, name="axon-traces", daemon=True)
        self._thread.start()

    def add(self, spans: Sequence[Span]) -> None:
        """Takes spans for the next export; drops those that the queue has no room for. Never waits for an export."""
        with self._lock:
            room = max(0, self.config.queue - len(self._waiting))
            self._waiting.extend(spans[:room])
        if len(spans) > room:
            self._count("lost", len(spans) - room)
        self._wake.set()

    def close(self) -> None:
        """Exports what waits, for ``timeout_s`` at most; what is left is counted as lost."""
        self._closing.set()
        self._wake.set()
        self._thread.join(self.config.timeout_s)
        self._close_export()
        if left := self._take(len(self._waiting)):
            self._count("lost", len(left))

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._closing.wait(self.config.gather_s)
            self._wake.clear()
            while batch := self._take(_BATCH):
                self._send(batch)
            if self._closing.is_set():
                return

    def _take(self, most: int) -> list[Span]:
        with self._lock:
            return [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]

    def _send(self, batch: Sequence[Span]) -> None:
        try:
            is_taken = self._export(batch)
        except Exception:
            is_taken = False
            if not self._is_failing:  # said once, not with every batch while the collector is away
                _logger.exception("traces.export_failed", spans=len(batch))
        self._count("exported" if is_taken else "lost", len(batch))
        if is_taken == self._is_failing:
            self._is_failing = not is_taken
            if is_taken:
                _logger.info("traces.exported_again")
            else:
                _logger.warning("traces.lost", spans=len(batch), next="more are lost until the collector answers")
