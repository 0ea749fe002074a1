"""Lists by pages: whoever goes from page to page sees everything once, in order."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.ids import new_id
from axon.errors import InvalidInput
from axon.gateway.http.paging import DEFAULT_LIMIT, Look, cursor, listed, page_of

LOOK: Look[int] = Look(lambda number: f"item_{number}", lambda number: {"id": f"item_{number}"})


def page(num: int, *, after: str = "", limit: str = DEFAULT_LIMIT, order: str = "asc") -> dict[str, Any]:
    return page_of(range(num), LOOK, after=after, limit=limit, order=order)


@given(num=st.integers(0, 250), limit=st.integers(1, 100), order=st.sampled_from(["asc", "desc"]))
def test_page_after_page_shows_everything_once_and_in_order(num: int, limit: int, order: str) -> None:
    seen: list[str] = []
    after, has_more = "", True
    while has_more:
        found = page(num, after=after, limit=str(limit), order=order)
        ids = [each["id"] for each in found["data"]]
        assert len(ids) <= limit
        assert (found["first_id"], found["last_id"]) == ((ids[0], ids[-1]) if ids else (None, None))
        seen += ids
        after, has_more = found["last_id"], found["has_more"]
        assert not has_more or ids
    expected = [f"item_{number}" for number in range(num)]
    assert seen == (expected if order == "asc" else expected[::-1])


@pytest.mark.parametrize("limit", ["0", "101", "-1", "", "ten", "1.5", "0100", "٣", " 5", "1" * 400])
def test_a_limit_that_is_no_number_from_1_to_100_is_refused(limit: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        page(3, limit=limit)
    assert refused.value.param == "limit"


@pytest.mark.parametrize("order", ["", "ASC", "newest"])
def test_an_order_that_is_neither_up_nor_down_is_refused(order: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        page(3, order=order)
    assert refused.value.param == "order"


def test_a_cursor_that_is_not_in_the_list_is_refused_and_not_taken_for_the_beginning() -> None:
    with pytest.raises(InvalidInput, match="item_9") as refused:
        page(3, after="item_9")
    assert refused.value.param == "after"


def test_the_cursor_of_a_list_by_ids_may_be_gone_but_must_be_an_id() -> None:
    gone = new_id("file-", 1_700_000_000.0)
    assert cursor(gone, "file-") == gone
    assert cursor("", "file-") == ""
    for wrong in ("nope", gone.replace("file-", "batch_"), "file-" + "~" * 5000):
        with pytest.raises(InvalidInput, match="in this list") as refused:
            cursor(wrong, "file-")
        assert refused.value.param == "after"
        assert len(str(refused.value)) < 200


def test_behind_the_last_one_there_is_an_empty_page() -> None:
    assert page(3, after="item_2") == listed([], LOOK)
    assert listed([], LOOK) == {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False}
