"""The table of durations is of files that are there, and a run that is saved changes what it ran."""

from pathlib import Path

from tests import durations

TESTS = Path(__file__).resolve().parent


def test_every_file_of_the_table_is_there() -> None:
    assert [name for name in durations.known() if not (TESTS / name).is_file()] == []


def test_a_files_tests_are_summed_with_what_was_set_up_for_them() -> None:
    took = [("tests/a/test_b.py::test_c", 2.0), ("tests/a/test_b.py::test_c[1]", 1.5), ("tests/test_d.py::test_e", 1.0)]
    assert durations.summed(took) == {"a/test_b.py": 3.5, "test_d.py": 1.0}


def test_what_was_not_run_keeps_its_time_and_what_is_gone_or_short_has_none() -> None:
    old = {"test_kept.py": 9.0, "test_gone.py": 9.0, "test_quicker.py": 9.0, "test_slower.py": 9.0}
    new = {"test_quicker.py": durations.LEAST_S / 2, "test_slower.py": 12.0}
    there = ["test_kept.py", "test_quicker.py", "test_slower.py", "test_unknown.py"]
    assert durations.merged(old, new, there) == {"test_kept.py": 9.0, "test_slower.py": 12.0}


def test_the_longest_file_is_written_first(tmp_path: Path) -> None:
    table = tmp_path / "durations.toml"
    durations.save([("tests/test_durations.py::test_x", 99_999.0)], table)
    assert table.read_text().splitlines()[2] == '"test_durations.py" = 99999'
