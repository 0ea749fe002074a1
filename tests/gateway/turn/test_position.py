"""A reader's position: a seq and nothing else, and never one past the end of a complete answer."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from axon.domain.reply import MessagesReply
from axon.domain.turn import Turn, opened
from axon.errors import InvalidInput
from axon.gateway.turn.position import check_position, last_event_id, seq_of
from tests.contracts.builders import make_ended, make_job

ENDED = make_ended(make_job(), num_tokens=3)


class Store:
    """What the store has of the turn."""

    def __init__(self, stored: Turn | None) -> None:
        self._stored = stored

    async def stored(self, turn_id: str) -> Turn | None:
        return self._stored


async def is_refused(turn: Turn, after: int, *, stored: Turn | None) -> bool:
    lookup: Any = Store(stored)
    try:
        await check_position(lookup, turn, after, "after")
    except InvalidInput as error:
        return error.param == "after"
    return False


@given(st.integers(0, 10**15 - 1))
def test_a_seq_is_a_whole_number(seq: int) -> None:
    assert seq_of(str(seq), "after") == seq


@pytest.mark.parametrize("text", ["", "-1", "1.0", "one", "٣", " 1", "1" * 16])
def test_what_is_no_seq_is_refused_by_the_name_of_its_field(text: str) -> None:
    with pytest.raises(InvalidInput, match="'after'") as refused:
        seq_of(text, "after")
    assert refused.value.param == "after"


def test_who_sends_no_event_id_has_read_nothing() -> None:
    assert last_event_id(Request({"type": "http", "headers": []})) == 0
    assert last_event_id(Request({"type": "http", "headers": [(b"last-event-id", b"")]})) == 0
    assert last_event_id(Request({"type": "http", "headers": [(b"last-event-id", b"7")]})) == 7


async def test_a_position_past_the_last_token_of_a_complete_answer_is_refused() -> None:
    assert [await is_refused(ENDED, after, stored=ENDED) for after in (0, 3, 4)] == [False, False, True]


async def test_a_reader_may_come_back_with_the_number_of_a_message_s_end() -> None:
    message = make_ended(make_job(reply=MessagesReply(model="small")), num_tokens=3)
    assert [await is_refused(message, after, stored=message) for after in (3, 4, 5)] == [False, False, True]


async def test_a_log_that_says_less_than_the_store_proves_nothing() -> None:
    longer = make_ended(make_job(), num_tokens=9)
    assert not await is_refused(ENDED, 5, stored=longer)
    assert not await is_refused(ENDED, 5, stored=None)
    assert await is_refused(ENDED, 10, stored=longer)


async def test_while_a_turn_runs_and_after_one_that_failed_nobody_is_refused() -> None:
    running = opened(make_job())
    failed = make_ended(make_job(), num_tokens=3, state="failed")
    assert not await is_refused(running, 99, stored=running)
    assert not await is_refused(failed, 99, stored=failed)
    assert not await is_refused(ENDED, 99, stored=replace(running))
