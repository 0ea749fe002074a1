"""A reader's place: whatever comes, in whatever pieces, each token is taken once and in order."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from axon.domain.log.chunk import Chunk, End, Token
from axon.domain.stream import Cursor, Reread
from tests.domain.strategies import cut_chunk, cuts, streams


def read(cursor: Cursor, stream: Chunk, places: list[int]) -> list[Token]:
    """What a reader gets from the log past its cursor, cut at these places."""
    taken: list[Token] = []
    for chunk in cut_chunk(stream, places):
        fresh = cursor.take(chunk.after(cursor.seq))
        assert fresh is not Reread.GAP
        taken.extend(fresh.tokens if isinstance(fresh, Chunk) else ())
    return taken


@given(streams(), cuts())
def test_every_token_is_taken_once_in_order_however_the_stream_is_cut(stream: Chunk, places: list[int]) -> None:
    cursor = Cursor()
    assert tuple(read(cursor, stream, places)) == stream.tokens
    assert (cursor.seq, cursor.ended) == (len(stream.tokens), True)


@given(streams(), st.data())
def test_chunks_that_repeat_skip_or_come_out_of_order_change_nothing(stream: Chunk, data: st.DataObject) -> None:
    """Hints arrive in any order and any cut; on a gap the reader reads the log, cut in yet another way."""
    hints = [chunk for _ in range(3) for chunk in cut_chunk(stream, data.draw(cuts()))]
    cursor = Cursor()
    taken: list[Token] = []
    for hint in data.draw(st.permutations(hints)):
        fresh = cursor.take(hint)
        if fresh is Reread.GAP:
            taken.extend(read(cursor, stream, data.draw(cuts())))
        elif isinstance(fresh, Chunk):
            taken.extend(fresh.tokens)
    taken.extend(read(cursor, stream, []))
    assert tuple(taken) == stream.tokens


@given(streams(), cuts(), st.integers(0, 12))
def test_a_reader_who_comes_back_gets_the_rest(stream: Chunk, places: list[int], seq: int) -> None:
    seq = min(seq, len(stream.tokens))
    cursor = Cursor(seq=seq)
    assert tuple(read(cursor, stream, places)) == stream.tokens[seq:]
    assert cursor.ended


@given(streams(), st.integers(0, 12), st.integers(2, 5))
@settings(max_examples=100)
def test_a_chunk_that_does_not_follow_asks_for_the_log_and_moves_nothing(stream: Chunk, seq: int, skip: int) -> None:
    cursor = Cursor(seq=seq)
    assert cursor.take(replace(stream, first=seq + skip)) is Reread.GAP
    assert cursor == Cursor(seq=seq)


def test_a_chunk_read_before_is_none() -> None:
    cursor = Cursor(seq=2)
    assert cursor.take(Chunk(first=1, epoch=1, tokens=(Token(0, 1, "a"), Token(0, 2, "b")))) is None


def test_an_end_without_tokens_ends_the_reader_once() -> None:
    cursor = Cursor(seq=2)
    last = Chunk(first=3, epoch=1, terminal="completed", ends=(End(0, "stop"),))
    assert cursor.take(last) == last
    assert cursor.ended
    assert cursor.take(last) is None


def test_the_part_of_a_chunk_past_a_seq_keeps_its_numbering_and_marks() -> None:
    chunk = Chunk(first=4, epoch=1, tokens=tuple(Token(0, seq, "") for seq in (4, 5, 6)), ends=(End(0, "stop"),))
    assert chunk.after(3) is chunk
    assert chunk.after(0) is chunk
    assert (chunk.after(5).first, chunk.after(5).last, len(chunk.after(5).tokens)) == (6, 6, 1)
    assert (chunk.after(6).first, chunk.after(6).last, chunk.after(6).ends) == (7, 6, chunk.ends)
