"""Bytes as tokens: every text is its bytes, and no control token can be written as one."""

from hypothesis import given
from hypothesis import strategies as st

from axon.domain.byte_tokens import BOS_ID, EOS_ID, NUM_BYTES, VOCAB_SIZE, ByteTokens


@given(st.binary())
def test_the_tokens_of_a_text_are_its_bytes(text: bytes) -> None:
    tokens = ByteTokens()
    assert b"".join(tokens.tokens[id] for id in tokens(text)) == text


def test_control_tokens_are_none_of_the_bytes() -> None:
    tokens = ByteTokens()
    assert tokens.special_token_ids == [BOS_ID, EOS_ID]
    assert len(tokens.tokens) == len(set(tokens.tokens)) == VOCAB_SIZE
    assert tokens.eos_token_id == EOS_ID


def test_a_larger_vocabulary_has_more_control_tokens() -> None:
    tokens = ByteTokens(size=272, eos_id=260)
    assert tokens.special_token_ids == list(range(NUM_BYTES, 272))
    assert tokens.eos_token_id == 260
