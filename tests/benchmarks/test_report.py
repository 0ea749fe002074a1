"""What a benchmark says of its run: command and machine first, one line of JSON last, kept where that is asked."""

import argparse
import json
from pathlib import Path

import pytest
from benchmarks.measures import report
from benchmarks.measures.report import Report, add_report_options


def options_of(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_report_options(parser)
    parser.add_argument("--smoke", action="store_true")
    return parser.parse_args(arguments)


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr("sys.argv", ["somewhere/cold_start.py", "--note", "two words"])
    return tmp_path


def test_a_run_is_told_and_kept_with_its_command_and_note(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Report("cold_start", options_of("--save", "--note", "two words")).end({"rows": {"echo": 1.5}})
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first == "python -m benchmarks.cold_start --note 'two words'"
    told = json.loads(last)
    assert (told["benchmark"], told["command"], told["note"]) == ("cold_start", first, "two words")
    assert told["rows"] == {"echo": 1.5}
    assert {"cpu", "cores"} <= told["machine"].keys()
    [kept] = results.iterdir()
    assert kept.name == f"cold-start-{told['date'][:10]}.json"
    assert json.loads(kept.read_text()) == told


def test_a_run_may_be_kept_under_a_name_of_its_own(results: Path) -> None:
    Report("kv_tiers", options_of("--save")).end({}, called="kv-tiers-cpu")
    [kept] = results.iterdir()
    assert kept.name.startswith("kv-tiers-cpu-")


@pytest.mark.parametrize("arguments", [(), ("--smoke",), ("--save", "--smoke")])
def test_nothing_is_kept_unasked_and_never_of_a_smoke(results: Path, arguments: tuple[str, ...]) -> None:
    run = Report("path", options_of(*arguments))
    run.end({})
    assert not run.is_kept
    assert not list(results.iterdir())
