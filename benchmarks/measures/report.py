"""What a benchmark's run says of itself beside its figures: printed first, and kept with them. Measures nothing."""

import argparse
import json
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.measures.machine import load_average, machine

RESULTS = Path(__file__).resolve().parents[1] / "results"


def add_report_options(parser: argparse.ArgumentParser) -> None:
    """The options of benchmarks that keep their figures, but for ``--smoke``, which only some have."""
    parser.add_argument(
        "--save", action="store_true", help="keep the result in benchmarks/results/, plots in docs/plots/"
    )
    parser.add_argument("--note", default="", help="a word on the circumstances, kept with the result")
    parser.set_defaults(smoke=False)


class Report:
    """A run of one benchmark, from here to ``end``. Its command and machine are printed at once.

    ``is_kept`` says whether its figures and plots are: where ``--save`` asks, and never of a ``--smoke``.
    """

    def __init__(self, name: str, options: argparse.Namespace, arguments: Sequence[str] | None = None) -> None:
        """``arguments`` are the command's where it is not the program that was started."""
        self._name, self._note = name, options.note
        self.is_kept = options.save and not options.smoke
        self._command = shlex.join(
            ["python", "-m", f"benchmarks.{name}", *(sys.argv[1:] if arguments is None else arguments)]
        )
        self._started, self._load = time.perf_counter(), load_average()
        print(f"{self._command}\nmachine {machine()}, load average {self._load}", flush=True)

    def end(self, found: Mapping[str, Any], *, called: str = "") -> None:
        """Prints the run as one line of JSON, and keeps it if asked, under its name or ``called``."""
        result = self.told(found)
        if self.is_kept:
            self.path(called).write_text(json.dumps(result, indent=2) + "\n")
        print(json.dumps(result), flush=True)

    def path(self, called: str = "") -> Path:
        """Where a run of today is kept."""
        return RESULTS / f"{called or self._name.replace('_', '-')}-{datetime.now(UTC):%Y-%m-%d}.json"

    def told(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """The run with what it found."""
        return {
            "benchmark": self._name,
            "command": self._command,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine(),
            "load_average": {"before": self._load, "after": load_average()},
            "seconds": round(time.perf_counter() - self._started),
            "note": self._note,
            **found,
        }
