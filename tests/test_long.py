"""A short run does a tenth of what is long."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import long

REPOSITORY = Path(__file__).resolve().parents[1]

CASES = [*range(95)]


def test_a_short_run_has_a_tenth_of_a_corpus() -> None:
    assert len(CASES) - len(long.left_out(CASES, None)) == 10


def test_ten_seeds_see_every_case() -> None:
    seen = {case for seed in range(10) for case in set(CASES) - set(long.left_out(CASES, seed))}
    assert seen == set(CASES)


@pytest.mark.parametrize("seed", [None, 1, 7, 23])
@pytest.mark.parametrize("count", [1, 2, 9])
def test_a_small_corpus_has_one_case_left(count: int, seed: int | None) -> None:
    assert len(long.left_out(CASES[:count], seed)) == count - 1


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

@pytest.fixture(params=["embedded", "services"])
def place(request): return request.param

def test_here_or_there(place): ...
@pytest.mark.everywhere
def test_here_and_there(place): ...
@pytest.mark.long("some")
@pytest.mark.parametrize("number", range(5))
def test_some(number): ...
def test_another(): ...
"""


def test_a_long_run_has_every_place_and_every_case(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\nfrom tests.conftest import _SEED\n")
    (tmp_path / "test_it.py").write_text(FILE)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "--collect-only", "-m", "long or anywhere", str(tmp_path)),
            *("-c", str(REPOSITORY / "pyproject.toml"), "--rootdir", str(tmp_path)),
        ],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "TEST_SEED": "3", "TEST_LONG": "1", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    found = [line.partition("::")[2].partition("[")[0] for line in done.stdout.splitlines() if "::" in line]
    assert sorted(found) == ["test_here_or_there"] * 2 + ["test_some"] * 5, done.stdout
