"""When a reader whose turn waits is told anew: on changes, and not too often."""

from dataclasses import replace

from axon.gateway.offers.wait import State, Wait
from axon.gateway.turn.notices import Notices

LOADING = Wait(state=State.LOADING, position=3, expected_s=20.0)


class Line:
    """How a turn waits, as a test says."""

    def __init__(self, wait: Wait | None = LOADING) -> None:
        self.wait = wait

    def look(self) -> Wait | None:
        return self.wait


def test_what_the_reader_knows_is_not_told_again_while_time_passes_as_expected() -> None:
    line = Line()
    notices = Notices(line.look, LOADING, now=100.0)
    assert notices.due(101.0) is None
    line.wait = replace(LOADING, expected_s=10.0)
    assert notices.due(110.0) is None


def test_a_reader_that_knows_nothing_is_told_at_once() -> None:
    notices = Notices(Line().look, now=100.0)
    assert notices.due(100.0) == LOADING
    assert notices.due(103.0) is None


def test_a_change_of_place_state_or_forecast_is_told_and_none_within_two_seconds_of_another() -> None:
    line = Line()
    notices = Notices(line.look, LOADING, now=100.0)
    line.wait = replace(LOADING, position=2)
    assert notices.due(101.9) is None
    assert notices.due(102.0) == line.wait
    line.wait = replace(line.wait, state=State.READY)
    assert notices.due(103.0) is None
    assert notices.due(104.0) == line.wait
    line.wait = replace(line.wait, expected_s=90.0)
    assert notices.due(106.0) == line.wait
    line.wait = replace(line.wait, expected_s=None)
    assert notices.due(108.0) == line.wait
    assert notices.due(110.0) is None


def test_a_turn_that_waits_no_more_is_told_nothing() -> None:
    assert Notices(Line(None).look, now=100.0).due(100.0) is None
