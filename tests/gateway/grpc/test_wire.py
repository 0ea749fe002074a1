"""Messages are counted before they are decoded: no bytes become much memory, and none raise anything but our error."""

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from axon.errors import InvalidInput
from axon.gateway.grpc.wire import MAX_FIELDS, count_fields, decoded
from axon.v1 import axon_pb2 as pb

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
messages = st.builds(
    pb.Message,
    role=texts,
    content=texts,
    tool_calls=st.lists(st.builds(pb.ToolCall, id=texts, arguments=texts), max_size=3),
)
turns = st.builds(
    lambda said, bias, stop: pb.GenerateRequest(
        turn=pb.Turn(
            model="m",
            chat=pb.Chat(messages=said),
            sampling=pb.Sampling(logit_bias=bias, stop=stop, temperature=0.5, seed=-1),
        )
    ),
    st.lists(messages, max_size=4),
    st.dictionaries(st.integers(0, 1 << 31), st.floats(-100, 100), max_size=3),
    st.lists(texts, max_size=3),
)


@given(turns)
def test_what_was_encoded_is_decoded(asked: pb.GenerateRequest) -> None:
    assert decoded(pb.GenerateRequest, asked.SerializeToString()) == asked


@given(turns)
def test_every_message_and_text_is_counted(asked: pb.GenerateRequest) -> None:
    said = asked.turn.chat.messages
    least = len(said) + sum(len(each.tool_calls) for each in said) + 2 * len(asked.turn.sampling.logit_bias)
    assert count_fields(asked.SerializeToString(), pb.GenerateRequest) >= least + 5


@given(st.binary(max_size=200))
def test_bytes_that_are_no_message_are_refused_and_the_library_agrees(data: bytes) -> None:
    try:
        pb.GenerateRequest.FromString(data)
        is_one = True
    except DecodeError:
        is_one = False
    if is_one and not _has_group(data):
        assert decoded(pb.GenerateRequest, data) == pb.GenerateRequest.FromString(data)
        return
    if not is_one:
        with pytest.raises(InvalidInput) as refused:
            decoded(pb.GenerateRequest, data)
        assert refused.value.code == "invalid_protobuf"


def _has_group(data: bytes) -> bool:
    """Groups (wire types 3 and 4) are skipped by the library, and refused here; no proto3 client writes them."""
    return any(byte & 7 in (3, 4) for byte in data)


@given(turns, st.data())
def test_a_message_that_breaks_off_raises_our_error_or_is_shorter(
    asked: pb.GenerateRequest, data: st.DataObject
) -> None:
    whole = asked.SerializeToString()
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(InvalidInput):
        decoded(pb.GenerateRequest, cut or b"\x0a")


def test_few_bytes_that_would_become_many_messages_are_refused() -> None:
    inside = b"\x0a\x00" * (MAX_FIELDS + 1)  # empty messages of a chat
    chat = b"\x12" + _varint(len(inside)) + inside
    turn = b"\x0a" + _varint(len(chat)) + chat
    with pytest.raises(InvalidInput, match="too many fields"):
        decoded(pb.GenerateRequest, turn)


def test_a_packed_list_counts_as_one_field() -> None:
    asked = pb.GenerateRequest(turn=pb.Turn(model="m", prompt_ids=pb.TokenIds(ids=range(200_000))))
    assert count_fields(asked.SerializeToString(), pb.GenerateRequest) == 4


def _varint(number: int) -> bytes:
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])
