"""The codec: what is written comes back, and what a later version added is carried along."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.job import Job
from axon.domain.log.chunk import Chunk
from axon.domain.presence import Presence
from axon.domain.session.residence import Residence
from axon.domain.turn import Turn, opened
from axon.domain.wire import decode, encode
from tests.contracts.builders import make_presence, make_residence
from tests.domain.strategies import chunks, jobs, make_job, plain, turns


@given(jobs())
def test_a_job_comes_back(job: Job) -> None:
    assert decode(Job, encode(job)) == job


@given(chunks())
def test_a_chunk_comes_back(chunk: Chunk) -> None:
    assert decode(Chunk, encode(chunk)) == chunk


@given(turns())
def test_a_turn_comes_back_with_its_job(turn: Turn) -> None:
    assert decode(Turn, encode(turn)) == turn


@given(st.sampled_from([Job, Chunk, Turn, Presence, Residence]), plain)
def test_a_field_of_a_later_version_is_kept_through_reading_and_writing(kind: Any, value: Any) -> None:
    values = (make_job(), Chunk(first=1, epoch=1), opened(make_job()), make_presence("w1"), make_residence())
    today: Any = {type(value): value for value in values}[kind]
    later = {**msgspec.msgpack.decode(encode(today)), "v": 2, "added": value}
    read = decode(kind, msgspec.msgpack.encode(later))
    assert (read.v, read.extra) == (2, {"added": value})
    assert msgspec.msgpack.decode(encode(read)) == later


def test_a_later_field_of_the_job_inside_a_turn_is_kept_too() -> None:
    turn = opened(make_job(extra={"added": [1, 2]}))
    assert decode(Turn, encode(turn)).job.extra == {"added": [1, 2]}


def test_a_field_that_an_older_version_did_not_write_has_its_default() -> None:
    older = msgspec.msgpack.decode(encode(make_job(priority=3)))
    del older["priority"]
    assert decode(Job, msgspec.msgpack.encode(older)) == make_job()


def test_a_kept_field_cannot_hide_a_real_one() -> None:
    assert decode(Job, encode(make_job(extra={"tenant": "other"}))).tenant == "acme"


@pytest.mark.parametrize("kind", [Job, Chunk, Turn, Presence, Residence])
@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x90", b"\x01", b"\x80", b"\x81\xa1a"], ids=repr)
def test_bytes_that_hold_no_value_are_refused(kind: Any, data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode(kind, data)


def test_a_turn_whose_job_is_no_job_is_refused() -> None:
    broken = {**msgspec.msgpack.decode(encode(opened(make_job()))), "job": 3}
    with pytest.raises(msgspec.DecodeError):
        decode(Turn, msgspec.msgpack.encode(broken))


@given(turns(), st.data())
def test_half_a_value_is_refused(turn: Turn, data: st.DataObject) -> None:
    whole = encode(turn)
    with pytest.raises(msgspec.DecodeError):
        decode(Turn, whole[: data.draw(st.integers(0, len(whole) - 1))])
