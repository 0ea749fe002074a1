"""A chunk cut at any seq: the two parts are the whole, and no choice's end is lost between them."""

from hypothesis import given
from hypothesis import strategies as st

from axon.domain.log.chunk import Chunk, Details, End, Token


def made(first: int, num: int, ends: list[int], terminal: str) -> Chunk:
    tokens = tuple(Token(0, first + place, f" {first + place}") for place in range(num))
    marks = tuple(End(choice, "stop", first + at) for choice, at in enumerate(ends) if at < num)
    return Chunk(first=first, epoch=3, tokens=tokens, ends=marks, terminal=terminal, cached=2)


chunks = st.builds(
    made,
    st.integers(1, 5),
    st.integers(1, 6),
    st.lists(st.integers(0, 5), max_size=3),
    st.sampled_from(["", "completed"]),
)


@given(chunks, st.integers(0, 12))
def test_the_parts_before_and_after_a_seq_are_the_whole(chunk: Chunk, seq: int) -> None:
    head, tail = chunk.until(seq), chunk.after(seq)
    assert head.tokens + tail.tokens == chunk.tokens
    assert all(token.id <= seq for token in head.tokens)
    assert all(token.id > seq for token in tail.tokens)
    assert set(head.ends) | set(tail.ends) == set(chunk.ends)
    assert (tail.terminal, tail.cached, tail.epoch) == (chunk.terminal, chunk.cached, chunk.epoch)


@given(chunks, st.integers(0, 12))
def test_who_stopped_at_a_choices_last_token_is_told_of_its_end(chunk: Chunk, seq: int) -> None:
    told = chunk.after(seq).ends
    assert {end for end in chunk.ends if end.at is not None and end.at >= seq} <= set(told)
    if chunk.terminal:
        assert told == chunk.ends


@given(chunks)
def test_the_last_seq_counts_the_tokens(chunk: Chunk) -> None:
    assert chunk.last == chunk.tokens[-1].id
    assert Chunk(first=5, epoch=1).last == 4


def test_a_token_without_details_has_no_thinking() -> None:
    assert Token(0, 1, "a").reasoning == ""
    assert Token(0, 1, "", Details(reasoning="hm")).reasoning == "hm"
