"""What a benchmark's run says of itself beside its figures: printed first, and kept with them. Measures nothing."""

import argparse
import json
import shlex
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.measures.machine import load_average, machine

RESULTS = Path(__file__).resolve().parents[1] / "results"


def add_report_options(parser: argparse.ArgumentParser) -> None:
    """The options of every benchmark that keeps its figures."""
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results/")
    parser.add_argument("--note", default="", help="a word on the circumstances, kept with the result")


class Report:
    """A run of one benchmark, from here to ``end``. Its command and machine are printed at once.

    ``is_kept`` says whether its figures and plots are: where ``--save`` asks, and never of a ``--smoke``.
    """

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        self._name, self._note = name, options.note
        self.is_kept = options.save and not getattr(options, "smoke", False)
        self._command = shlex.join(["python", "-m", f"benchmarks.{name}", *sys.argv[1:]])
        self._started, self._load = time.perf_counter(), load_average()
        print(f"{self._command}\nmachine {machine()}, load average {self._load}", flush=True)

    def end(self, found: Mapping[str, Any], *, called: str = "") -> None:
        """Prints the run as one line of JSON, and keeps it if asked, under its name or ``called``."""
        now = datetime.now(UTC)
        result = {
            "benchmark": self._name,
            "command": self._command,
            "date": now.isoformat(timespec="seconds"),
            "machine": machine(),
            "load_average": {"before": self._load, "after": load_average()},
            "seconds": round(time.perf_counter() - self._started),
            "note": self._note,
            **found,
        }
        if self.is_kept:
            path = RESULTS / f"{called or self._name.replace('_', '-')}-{now:%Y-%m-%d}.json"
            path.write_text(json.dumps(result, indent=2) + "\n")
        print(json.dumps(result), flush=True)
