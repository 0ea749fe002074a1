"""Who may run a job."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axon.domain.log.ownership import ClaimStep, LogView, claim_step, next_epoch


def make_view(*, owner: str = "", ended: bool = False, cancelled: bool = False) -> LogView:
    return LogView(body=b"", epoch=1, owner=owner, last=0, ended=ended, cancelled=cancelled)


@pytest.mark.parametrize("alive", [True, False])
@pytest.mark.parametrize("owner", ["", "me", "other"])
@pytest.mark.parametrize("cancelled", [True, False])
def test_an_ended_job_is_finished_whoever_owned_it(alive: bool, owner: str, cancelled: bool) -> None:
    view = make_view(owner=owner, ended=True, cancelled=cancelled)
    assert claim_step(view, me="me", owner_alive=alive) is ClaimStep.FINISH


@pytest.mark.parametrize("cancelled", [True, False])
def test_a_job_whose_owner_is_alive_is_parked_even_when_cancelled(cancelled: bool) -> None:
    view = make_view(owner="other", cancelled=cancelled)
    assert claim_step(view, me="me", owner_alive=True) is ClaimStep.PARK


@pytest.mark.parametrize(
    ("owner", "alive"), [("", False), ("", True), ("other", False), ("me", True), ("me", False)], ids=str
)
def test_a_job_that_is_free_mine_or_orphaned_is_claimed(owner: str, alive: bool) -> None:
    assert claim_step(make_view(owner=owner), me="me", owner_alive=alive) is ClaimStep.CLAIM
    assert claim_step(make_view(owner=owner, cancelled=True), me="me", owner_alive=alive) is ClaimStep.CANCEL


@given(st.integers(0, 2**53), st.floats(0, 2**40))
def test_an_epoch_grows_over_the_stored_one_and_over_time(stored: int, now: float) -> None:
    assert next_epoch(stored, now) > stored
    assert next_epoch(stored, now) > int(now * 1000)


@given(st.floats(1e9, 2e9), st.floats(0.002, 10.0))
@settings(max_examples=100)
def test_an_epoch_grows_over_a_log_that_lost_everything(then: float, later_s: float) -> None:
    assert next_epoch(0, then + later_s) > next_epoch(0, then)
