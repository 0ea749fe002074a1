"""Time for what a text can do without: work that takes too long is interrupted, and what comes behind is not begun."""

import contextlib
import re
import signal

import pytest

from axon.gateway.pages.rendering.allowance import Allowance


def forever() -> str:
    while True:
        pass


def test_work_within_the_time_is_returned_and_its_errors_are_raised() -> None:
    allowance = Allowance(60.0, 100)
    assert allowance.within(lambda: "done") == "done"
    with pytest.raises(ZeroDivisionError):
        allowance.within(lambda: str(1 / 0))
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_work_that_never_ends_is_interrupted_and_the_next_is_not_begun() -> None:
    allowance = Allowance(0.01, 100)
    assert allowance.within(forever) is None
    assert allowance.within(lambda: "begun") is None
    assert Allowance(60.0, 100).within(lambda: "another text") == "another text"


def test_a_regular_expression_that_backtracks_for_ever_is_interrupted() -> None:
    assert Allowance(0.01, 100).within(lambda: str(re.match("(a|a)*b", "a" * 100))) is None


def test_work_whose_interruption_was_dropped_is_interrupted_again() -> None:
    def dropping() -> str:
        with contextlib.suppress(BaseException):  # as Python does where a finalizer raises
            forever()
        return forever()

    assert Allowance(0.01, 100).within(dropping) is None
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_work_that_catches_every_error_is_interrupted_too() -> None:
    def stubborn() -> str:
        try:
            return forever()
        except Exception:
            return "caught"

    assert Allowance(0.01, 100).within(stubborn) is None


def test_what_is_longer_than_what_is_left_is_not_returned_and_takes_nothing() -> None:
    allowance = Allowance(60.0, 10)
    assert allowance.within(lambda: "a" * 11) is None
    assert allowance.within(lambda: "a" * 6) == "a" * 6
    assert allowance.within(lambda: "a" * 5) is None
    assert allowance.within(lambda: "a" * 4) == "a" * 4
    assert allowance.within(lambda: "") == ""
