"""The watchdog: patient with a first step and with a slow model, and with nobody for ever."""

from hypothesis import given
from hypothesis import strategies as st

from axon.worker.child.watchdog import Watchdog


def make_watchdog() -> Watchdog:
    return Watchdog(step_timeout_s=30.0, first_step_timeout_s=120.0)


def test_a_first_step_may_take_as_long_as_a_start() -> None:
    dog = make_watchdog()
    dog.got_work(100.0)
    assert not dog.hangs(220.0)
    assert dog.hangs(220.1)


def test_after_its_first_step_an_engine_is_expected_to_step_on() -> None:
    dog = make_watchdog()
    dog.got_work(100.0)
    dog.stepped(101.0)
    assert not dog.hangs(131.0)
    assert dog.hangs(131.1)


def test_an_engine_whose_steps_are_long_is_given_longer() -> None:
    dog = make_watchdog()
    dog.got_work(0.0)
    dog.stepped(1.0)
    dog.stepped(8.0)
    assert not dog.hangs(77.0)
    assert dog.hangs(79.0)


def test_a_long_first_step_makes_nobody_patient_with_the_later_ones() -> None:
    dog = make_watchdog()
    dog.got_work(0.0)
    dog.stepped(100.0)
    dog.stepped(101.0)
    assert dog.hangs(131.1)


def test_an_engine_that_had_nothing_to_do_was_not_silent() -> None:
    dog = make_watchdog()
    dog.got_work(0.0)
    dog.stepped(1.0)
    dog.got_work(1000.0)
    assert not dog.hangs(1030.0)


def test_a_new_engine_has_its_first_step_before_it() -> None:
    dog = make_watchdog()
    dog.got_work(0.0)
    dog.stepped(1.0)
    dog.started()
    dog.got_work(2.0)
    assert not dog.hangs(122.0)
    assert dog.hangs(123.0)


@given(st.lists(st.floats(0.0, 1000.0), max_size=20))
def test_nobody_is_waited_for_longer_than_for_a_start(steps_s: list[float]) -> None:
    dog = make_watchdog()
    now = 0.0
    dog.got_work(now)
    for step_s in steps_s:
        now += step_s
        dog.stepped(now)
        assert 30.0 <= dog.timeout_s <= 120.0
        assert not dog.hangs(now + 29.9)
        assert dog.hangs(now + 120.1)
