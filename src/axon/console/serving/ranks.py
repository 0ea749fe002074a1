"""Runs ``axon rank`` until it is stopped. Knows no rank itself."""

import signal
import threading
from typing import TYPE_CHECKING

from rich.console import Console

from axon.console.serving.screen import StartProgress
from axon.telemetry import logs

if TYPE_CHECKING:
    from axon.settings import Settings


def serve_until_stopped(settings: "Settings", rendezvous: str, count: int) -> int:
    """Runs this host's ranks until SIGINT or SIGTERM; returns the process's exit code."""
    from axon.bootstrap.worker.ranks import Ranks

    logs.configure(settings.log, service="axon-rank")
    progress = StartProgress(Console(stderr=True))
    try:
        ranks = Ranks.prepare(settings, rendezvous, count, progress.update)
    finally:
        progress.close()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    ranks.run(stop)
    return 0
