"""A short run does a tenth of what is long."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import long

REPOSITORY = Path(__file__).resolve().parents[1]

CASES = [*range(95)]
LONG_MARKS = "long or anywhere or property or table"
"""What ``make test-long`` runs."""


def test_a_short_run_has_a_tenth_of_a_corpus() -> None:
    assert len(CASES) - len(long.left_out(CASES, None)) == 10


def test_ten_seeds_see_every_case() -> None:
    seen = {case for seed in range(10) for case in set(CASES) - set(long.left_out(CASES, seed))}
    assert seen == set(CASES)


@pytest.mark.parametrize("seed", [None, 1, 7, 23])
@pytest.mark.parametrize("count", [1, 2, 9])
def test_a_small_corpus_has_one_case_left(count: int, seed: int | None) -> None:
    assert len(long.left_out(CASES[:count], seed)) == count - 1


def test_every_row_and_column_of_a_table_is_tried_each_time_and_in_some_seeds_every_cell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TEST_LONG", raising=False)
    rows, columns, seen = range(4), range(9), set[tuple[int, int]]()
    for seed in range(long.TURNS):
        monkeypatch.setenv("TEST_SEED", str(seed))
        cells = {(row, column) for row in rows for column in long.in_turn(columns, row)}
        assert {row for row, _ in cells} == set(rows)
        assert {column for _, column in cells} == set(columns)
        assert not cells & seen
        seen |= cells
    assert len(seen) == len(rows) * len(columns)
    monkeypatch.setenv("TEST_LONG", "1")
    assert long.in_turn(columns, 1) == [*columns]


@pytest.mark.parametrize(("asked", "seconds"), [("1", 600.0), ("", 60.0)])
def test_a_soak_lasts_a_tenth_of_its_time(monkeypatch: pytest.MonkeyPatch, asked: str, seconds: float) -> None:
    monkeypatch.setenv("TEST_LONG", asked)
    assert long.share(600.0) == seconds


@pytest.mark.parametrize(("asked", "number"), [("1", 100), ("", 34)])
def test_a_property_has_a_third_of_its_examples(monkeypatch: pytest.MonkeyPatch, asked: str, number: int) -> None:
    monkeypatch.setenv("TEST_LONG", asked)
    assert long.examples(100) == number
    assert long.examples(1) == 1


@pytest.mark.parametrize(("seed", "first"), [("", 0), ("4", 4), ("23", 3)])
def test_a_test_that_goes_through_its_cases_by_itself_has_a_tenth_of_them(
    monkeypatch: pytest.MonkeyPatch, seed: str, first: int
) -> None:
    monkeypatch.setenv("TEST_SEED", seed)
    monkeypatch.setenv("TEST_LONG", "")
    assert long.some(CASES) == CASES[first::10]
    assert long.some(CASES[:1]) == CASES[:1]
    monkeypatch.setenv("TEST_LONG", "1")
    assert long.some(CASES) == CASES


def test_a_run_has_some_files_at_each_place_and_another_run_has_them_at_the_other() -> None:
    def place(file: str, seed: int | None) -> str:
        [at] = {"embedded", "services"} - set(long.left_out(["embedded", "services"], long.drawn_for(file, seed)))
        return at

    files = [f"tests/test_{number}.py" for number in range(20)]
    for seed in (None, 4):
        assert {place(file, seed) for file in files} == {"embedded", "services"}
    assert all(place(file, 4) != place(file, 5) for file in files)


def test_a_short_run_has_a_file_at_one_place_and_a_tenth_of_a_corpus_of_several_tests() -> None:
    asked = [(place, what) for place in ("embedded", "services") for what in ("test_a 1", "test_a 2", "test_b")]
    cases = [
        *(long.Case(file="a.py", anywhere=what) for _, what in asked),
        *(long.Case(file="b.py", corpus="some") for _ in range(5)),
        *(long.Case(file="c.py", corpus="some") for _ in range(5)),
        *(long.Case(file="c.py") for _ in range(2)),
    ]
    for seed in (None, 3, 4):
        stays = set(range(len(cases))) - long.out_of(cases, seed)
        assert {asked[number][1] for number in stays if number < 6} == {"test_a 1", "test_a 2", "test_b"}
        assert len({asked[number][0] for number in stays if number < 6}) == 1
        assert len([number for number in stays if 6 <= number < 16]) == 1
        assert {16, 17} <= stays


FILE = """
import pytest
from hypothesis import given, strategies as st

@pytest.fixture(params=["embedded", "services"])
def place(request): return request.param

def test_here_or_there(place): ...
@pytest.mark.everywhere
def test_here_and_there(place): ...
@pytest.mark.long("some")
@pytest.mark.parametrize("number", range(5))
def test_some(number): ...
def test_another(): ...
@pytest.mark.anywhere("format")
@pytest.mark.parametrize("place", ["one", "other"])
@pytest.mark.parametrize("format", ["json", "text"])
@pytest.mark.everywhere
def test_each_at_one_format(place, format): ...
@given(st.integers())
def test_any_number(number): ...
"""


def collected(folder: Path, *, long_run: str, marks: str = "") -> list[str]:
    """The tests that such a run of the file has."""
    (folder / "conftest.py").write_text("from tests.conftest import *\nfrom tests.conftest import _SEED\n")
    (folder / "test_it.py").write_text(FILE)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "--collect-only", "-m", marks, str(folder)),
            *("-c", str(REPOSITORY / "pyproject.toml"), "--rootdir", str(folder)),
        ],
        cwd=REPOSITORY,
        env={
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "TEST_SEED": "3",
            "TEST_LONG": long_run,
            "PYTEST_ADDOPTS": "",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line)


def test_a_long_run_has_every_place_every_case_and_every_property(tmp_path: Path) -> None:
    found = [each.partition("[")[0] for each in collected(tmp_path, long_run="1", marks=LONG_MARKS)]
    several = {"test_each_at_one_format": 4, "test_here_or_there": 2, "test_some": 5}
    assert found == sorted(["test_any_number", *(name for name, count in several.items() for _ in range(count))])


def test_a_short_run_has_one_value_of_the_parameter_that_a_mark_names(tmp_path: Path) -> None:
    found = [each for each in collected(tmp_path, long_run="") if "one_format" in each]
    assert len(found) == 2
    assert len({("json" in each, "text" in each) for each in found}) == 1
    assert {"one" in each.partition("[")[2] for each in found} == {True, False}


def test_make_asks_for_these_marks() -> None:
    assert f"-m '{LONG_MARKS}'" in (REPOSITORY / "Makefile").read_text()
