"""Tests that fail while the machine has no time are run again, and only those."""

from pathlib import Path

import pytest

from tests import stolen
from tests.stolen import Times, parse, share

pytest_plugins = ["pytester"]

_PLUGIN = """
    import pytest
    from tests import stolen

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(item, nextitem):
        for report in stolen.run(item, nextitem):
            item.ihook.pytest_runtest_logreport(report=report)
        return True

    def pytest_terminal_summary(terminalreporter):
        for line in stolen.told([each for found in terminalreporter.stats.values() for each in found]):
            terminalreporter.write_line(line)
"""
_FAILS_ONCE = """
    import pytest

    RUNS = []

    @pytest.fixture(scope="module")
    def number():
        RUNS.append(0)
        return len(RUNS)

    def test_a(number):
        assert number > 1
"""
_FAILS_ONCE_AND_NEVER_STOPS_CLEANLY = """
    import pytest

    RUNS = []

    @pytest.fixture(scope="session", params=[OSError, pytest.fail.Exception])
    def number(request):
        RUNS.append(request.param)
        yield RUNS.count(request.param)
        if RUNS.count(request.param) == 1:
            raise request.param("its port is gone")

    @pytest.fixture(scope="session")
    def another(number):
        yield number
        if number == 1:
            raise OSError("so is this one's")

    def test_a(another):
        assert another > 1

    def test_b(): pass
"""


def test_the_share_of_stolen_time_is_read_from_what_the_kernel_counts() -> None:
    before = parse("cpu  100 10 50 800 20 5 15 0 0 0\ncpu0 1 2 3\n")
    after = parse("cpu  120 10 60 830 20 5 15 40 0 0\n")
    assert (before, after) == (Times(1000, 0), Times(1100, 40))
    assert share(before, after) == 0.4
    assert share(after, after) == 0.0


def test_a_kernel_that_does_not_count_it_has_none_stolen() -> None:
    assert parse("") == parse("cpu  1 2 3 4\n") == Times()


@pytest.mark.parametrize(("taken", "passed", "failed"), [(0.5, 1, 0), (0.05, 0, 1)])
def test_a_failure_counts_unless_much_time_was_stolen(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, taken: float, passed: int, failed: int
) -> None:
    monkeypatch.setattr(stolen, "share", lambda before, after: taken)
    pytester.makeconftest(_PLUGIN)
    pytester.makepyfile(_FAILS_ONCE)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=passed, failed=failed)
    assert ("test_a failed while 50% of the machine's time was stolen" in result.stdout.str()) == bool(passed)


def test_what_a_failed_run_leaves_behind_and_cannot_stop_ends_no_other_test(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stolen, "share", lambda before, after: 0.5)
    pytester.makeconftest(_PLUGIN)
    pytester.makepyfile(_FAILS_ONCE_AND_NEVER_STOPS_CLEANLY)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=3)


def test_a_test_that_took_long_is_not_run_again(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stolen, "share", lambda before, after: 0.5)
    monkeypatch.setattr(stolen, "LONGEST_S", 0.0)
    pytester.makeconftest(_PLUGIN)
    pytester.makepyfile(_FAILS_ONCE)
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(failed=1)


def test_a_test_that_always_fails_fails(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stolen, "share", lambda before, after: 0.9)
    pytester.makeconftest(_PLUGIN)
    pytester.makepyfile("def test_a(): assert False")
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(failed=1)


def test_this_machine_can_be_asked() -> None:
    assert stolen.now().total > 0 or not Path("/proc/stat").exists()
