"""Frames survive any split of the bytes and refuse what they do not know."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.engine.config import EngineConfig
from axon.engine.protocol.codec import Decoder, Failed, Message, Start, encode
from axon.engine.protocol.messages import Abort, Counters, Emitted, Ready, Refused, StepOutput
from axon.runtime.framing import BadFrame
from tests.engine.builders import make_add

MESSAGES: list[Message] = [
    Start(config=EngineConfig(kind="echo"), model_dir="/models/x"),
    make_add(prompt=300, output=[1, 2], stop=("a", "b"), stop_ids=(3,), seed=2**63 - 1),
    Abort(ids=["a", "b"]),
    Ready(kernel="echo", max_model_len=10, max_sequences=2, num_blocks=3, block_size=4),
    StepOutput(
        emitted=[Emitted("a", 5), Emitted("b", 6, "stop")],
        refused=[Refused("c", "context_length_exceeded", "too long")],
        counters=Counters(num_running=2, step_s=0.5),
    ),
    Failed("no such model"),
]


@given(st.lists(st.integers(0, 1000), max_size=10))
def test_messages_come_back_whole_however_the_bytes_are_split(cuts: list[int]) -> None:
    data = b"".join(map(encode, MESSAGES))
    edges = sorted({0, len(data), *(cut % len(data) for cut in cuts)})
    decoder = Decoder()
    decoded = [message for i, j in pairwise(edges) for message in decoder.feed(data[i:j])]
    assert decoded == MESSAGES


def test_an_unknown_message_is_refused() -> None:
    body = msgspec.msgpack.encode(("Surprise", {}))
    with pytest.raises(BadFrame):
        Decoder().feed(len(body).to_bytes(4, "big") + body)


def test_wrong_fields_are_refused() -> None:
    body = msgspec.msgpack.encode(("Abort", {"ids": 7}))
    with pytest.raises(BadFrame):
        Decoder().feed(len(body).to_bytes(4, "big") + body)


def test_an_absurd_length_is_refused_before_it_is_waited_for() -> None:
    with pytest.raises(BadFrame):
        Decoder().feed(b"\xff\xff\xff\xff")


def test_unknown_fields_are_ignored_so_that_a_newer_peer_is_understood() -> None:
    body = msgspec.msgpack.encode(("Abort", {"ids": ["a"], "why": "new"}))
    assert Decoder().feed(len(body).to_bytes(4, "big") + body) == [Abort(ids=["a"])]
