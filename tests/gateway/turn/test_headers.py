"""What the headers of a request say of its turn, and what is refused in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from axon.errors import InvalidInput
from axon.gateway.turn.headers import idempotency_key, reader_grace_s, wants_ids, wants_ledger

LONGEST_S = 30.0


def asking(**headers: str) -> Request:
    named = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    return Request({"type": "http", "headers": named})


def grace_s(request: Request, *, is_read_later: bool = False) -> float | None:
    return reader_grace_s(request, is_read_later=is_read_later, longest_s=LONGEST_S)


def test_an_answer_that_nobody_could_read_later_ends_with_its_connection() -> None:
    assert grace_s(asking()) == 0.0
    assert grace_s(asking(), is_read_later=True) is None
    assert grace_s(asking(idempotency_key="order-17")) is None


@given(st.floats(0, 1e9))
def test_a_client_may_say_how_long_up_to_what_the_server_allows(seconds: float) -> None:
    for is_read_later in (False, True):
        found = grace_s(asking(x_axon_reader_grace=repr(seconds)), is_read_later=is_read_later)
        assert found == min(seconds, LONGEST_S)


@pytest.mark.parametrize(
    "text", ["", "soon", "-1", "-0.001", "nan", "inf", "-inf", "1,5", "1e999", "1_0", "+5", " ", "0x10"]
)
def test_a_time_that_is_no_number_of_seconds_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        grace_s(asking(x_axon_reader_grace=text), is_read_later=True)
    assert refused.value.param == "x-axon-reader-grace"


def test_two_times_are_refused_even_if_they_are_the_same() -> None:
    header = (b"x-axon-reader-grace", b"5")
    with pytest.raises(InvalidInput) as refused:
        grace_s(Request({"type": "http", "headers": [header, header]}))
    assert refused.value.param == "x-axon-reader-grace"


def test_an_idempotency_key_is_bounded() -> None:
    assert idempotency_key(asking()) == ""
    assert idempotency_key(asking(idempotency_key="k" * 255)) == "k" * 255
    with pytest.raises(InvalidInput) as refused:
        idempotency_key(asking(idempotency_key="k" * 256))
    assert refused.value.param == "Idempotency-Key"


@pytest.mark.parametrize(
    ("text", "is_on"), [("true", True), ("TRUE", True), ("1", True), ("false", False), ("", False)]
)
def test_a_header_is_switched_on_by_true_or_1(text: str, is_on: bool) -> None:
    assert wants_ledger(asking(x_axon_ledger=text)) == is_on
    assert wants_ids(asking(x_axon_event_ids=text)) == is_on


def test_who_sends_an_event_id_understands_them() -> None:
    assert wants_ids(asking(last_event_id="0"))
    assert not wants_ids(asking())
    assert not wants_ledger(asking(last_event_id="0"))
