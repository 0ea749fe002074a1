"""The journal's records: what is read back is what was written, and one bad record spoils no other."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.record import REFUSED, Marker, decode, encode, judge, sort
from axon.domain.turn import Turn, opened
from axon.errors import DependencyDown
from tests.domain.strategies import make_job, turns

records = turns() | st.builds(Marker, barrier=st.text("0123456789abcdef", min_size=1, max_size=8))


@given(records)
def test_a_record_comes_back_as_it_was_written(record: Turn | Marker) -> None:
    assert decode(encode(record)) == record


@given(st.lists(records | st.binary(max_size=12), max_size=6))
def test_a_batch_is_sorted_in_order_and_nothing_is_lost(given_records: list[Turn | Marker | bytes]) -> None:
    batch = sort([each if isinstance(each, bytes) else encode(each) for each in given_records])
    assert [turn for _, turn in batch.turns] == [each for each in given_records if isinstance(each, Turn)]
    assert list(batch.marker_ids) == [each.barrier for each in given_records if isinstance(each, Marker)]
    assert list(batch.unreadable) == [place for place, each in enumerate(given_records) if isinstance(each, bytes)]
    assert all(given_records[place] == turn for place, turn in batch.turns)


@pytest.mark.parametrize("barrier", ["", "xyz", "a" * 65, "drop table"])
def test_a_marker_whose_id_is_none_troubles_no_store(barrier: str) -> None:
    body = msgspec.msgpack.encode({"v": 1, "barrier": barrier})
    assert sort([body]).unreadable == (0,)


def test_what_the_store_refuses_is_set_aside_and_what_failed_otherwise_is_written_again() -> None:
    found = [(place, opened(make_job(id=f"turn_{place}"))) for place in (0, 2, 5)]
    verdict = judge(found, [None, DependencyDown("no", code=REFUSED), DependencyDown("away")])
    assert verdict.aside == ((2, REFUSED),)
    assert verdict.again == (found[2],)
