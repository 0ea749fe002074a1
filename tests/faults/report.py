"""What came of the faults: a table for people, a line for machines, and the page that keeps it."""

import json
import os
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.faults.every import FAULTS
from tests.faults.run import Outcome

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"
_HEAD = ("fault", "requests", "lost", "repeated", "other", "stall p50", "stall p99", "goal", "verdict")
_ORDER = {fault.name: place for place, fault in enumerate(FAULTS)}
_BEGIN, _END = "<!-- faults: written by `make faults` -->", "<!-- faults: end -->"


def row(outcome: Outcome) -> list[str]:
    goal = outcome.fault.goal_s
    stalls = [f"{outcome.stall_s(share):.2f} s" if outcome.stalls_s else "-" for share in (0.5, 0.99)]
    lost, repeated = outcome.count("lost", "gap"), outcome.count("repeated")
    others = len(outcome.violations) - lost - repeated
    counts = [str(each) for each in (outcome.requests, lost, repeated, others)]
    return [outcome.fault.name, *counts, *stalls, "-" if goal is None else f"{goal:g} s", outcome.verdict]


def table(rows: Sequence[Sequence[str]]) -> str:
    """As Markdown, which people can read as it is."""
    cells = [list(_HEAD), *map(list, rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEAD))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def machine_line(outcomes: Sequence[Outcome]) -> str:
    return json.dumps(
        {
            "faults": [
                {
                    "fault": outcome.fault.name,
                    "requests": outcome.requests,
                    "lost": outcome.count("lost", "gap"),
                    "repeated": outcome.count("repeated"),
                    "violations": len(outcome.violations),
                    "stall_p50_s": round(outcome.stall_s(0.5), 3),
                    "stall_p99_s": round(outcome.stall_s(0.99), 3),
                    "stalled": len(outcome.stalls_s),
                    "seconds": round(outcome.took_s, 1),
                    "seed": outcome.seed,
                    "verdict": outcome.verdict,
                }
                for outcome in outcomes
            ]
        }
    )


def save(outcomes: Sequence[Outcome], command: str) -> None:
    """Puts the rows into the page's table: a fault that was run now replaces its own, the others stay."""
    page = PAGE.read_text()
    before, rest = page.split(_BEGIN)
    old, after = rest.split(_END)
    kept = {cells[0]: cells for line in old.splitlines() if len(cells := _cells(line)) == len(_HEAD)}
    kept.pop(_HEAD[0], None)
    kept |= {outcome.fault.name: row(outcome) for outcome in outcomes}
    rows = sorted(kept.values(), key=lambda cells: _ORDER.get(cells[0], len(_ORDER)))
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    said = (
        f"Last written by `{command}` on {date}, {os.cpu_count()} {platform.machine()} cores, seed {outcomes[0].seed}."
    )
    PAGE.write_text(f"{before}{_BEGIN}\n{said}\n\n{table(rows)}\n{_END}{after}")


def _cells(line: str) -> list[str]:
    if not line.startswith("|") or re.fullmatch(r"[|\- ]+", line):
        return []
    return [cell.strip() for cell in line.strip("|").split("|")]
