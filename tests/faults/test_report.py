"""The page keeps what was seen before of the faults that were not run now."""

import json
from pathlib import Path

import pytest

from tests.faults import report
from tests.faults.checkers import Violation
from tests.faults.fault import Fault, Scene
from tests.faults.history import History, Told
from tests.faults.run import Outcome


def happen(_: Scene) -> None:
    """It happens."""


def outcome(name: str, *, lost: int = 0, stalls_s: tuple[float, ...] = (), error: str = "") -> Outcome:
    turns = [Told(client=0, ask="a", asked_at=0.0)] * 4
    return Outcome(
        fault=Fault(name=name, happen=happen, goal_s=3.0),
        seed=7,
        history=History(seed=7, asks={}, turns=turns),
        stalls_s=list(stalls_s),
        violations=[Violation("lost", "it")] * lost,
        error=error,
    )


def test_a_verdict_is_held_slow_broken_or_an_error() -> None:
    assert outcome("a", stalls_s=(1.0, 2.0)).verdict == "held"
    assert outcome("a", stalls_s=(1.0, 4.0)).verdict == "held, slow"
    assert outcome("a", lost=1).verdict == "broken"
    assert outcome("a", error="did not happen").verdict == "error"


def test_a_row_is_replaced_and_the_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- faults: written by `make faults` -->\n<!-- faults: end -->\nafter\n")
    monkeypatch.setattr(report, "PAGE", page)
    report.save([outcome("one"), outcome("two")], "first")
    report.save([outcome("two", lost=2)], "second")
    rows = [line.split("|")[1:-1] for line in page.read_text().splitlines() if line.startswith("| ")]
    assert [[cell.strip() for cell in row][:4] for row in rows] == [
        ["fault", "requests", "lost", "repeated"],
        ["one", "4", "0", "0"],
        ["two", "4", "2", "0"],
    ]
    assert page.read_text().startswith("before\n")
    assert page.read_text().endswith("\nafter\n")
    assert "`second`" in page.read_text()


def test_the_line_for_machines_has_what_counts() -> None:
    [fact] = json.loads(report.machine_line([outcome("one", lost=1, stalls_s=(0.5,))]))["faults"]
    assert (
        fact | {"fault": "one", "requests": 4, "lost": 1, "repeated": 0, "stall_p99_s": 0.5, "verdict": "broken"}
        == fact
    )
