"""Which refusals speak against the version that was to answer."""

from typing import TYPE_CHECKING, cast

import pytest

from axon.errors import AxonError, InvalidInput, LimitReached, Unavailable
from axon.gateway.turn.ask import Ask
from axon.gateway.turn.asking import _refuses
from axon.gateway.turn.entry import Answering, Entry
from tests.contracts.builders import make_job

if TYPE_CHECKING:
    from axon.gateway.offers.offer import Offer


def entry(*, is_drawn: bool = True, is_first: bool = True, is_decided: bool = True) -> Entry:
    made = Entry(Ask(prefix="cmpl-", tenant="acme", deployment="small"), "cmpl-1", 1.0)
    made.is_drawn, made.is_first = is_drawn, is_first
    made.answering = Answering(cast("Offer", None), "small@v2") if is_decided else None
    return made


@pytest.mark.parametrize("error", [Unavailable(), InvalidInput()])
def test_a_refusal_after_the_version_is_decided_on_speaks_against_it(error: AxonError) -> None:
    assert _refuses(entry(), error)


def test_a_limit_of_the_tenants_own_speaks_against_nobody() -> None:
    assert not _refuses(entry(), LimitReached())


def test_neither_does_what_is_refused_before_nor_in_a_session_that_goes_on_nor_of_a_version_that_is_named() -> None:
    for other in (entry(is_decided=False), entry(is_first=False), entry(is_drawn=False)):
        assert not _refuses(other, Unavailable())


def test_nor_an_error_after_the_turn_was_accepted() -> None:
    accepted = entry()
    accepted.repeat(make_job("cmpl-1"))
    assert not _refuses(accepted, Unavailable())
