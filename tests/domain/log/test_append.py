"""The one rule of the token log: who may write which chunk where. Every adapter keeps it."""

from hypothesis import given
from hypothesis import strategies as st

from axon.domain.log.append import AppendStatus, judge
from axon.domain.log.chunk import Chunk, Token

chunks = st.builds(
    Chunk,
    first=st.integers(1, 4),
    epoch=st.integers(1, 3),
    tokens=st.lists(st.just(Token(0, 1, "a")), max_size=2).map(tuple),
    terminal=st.sampled_from(["", "completed", "cancelled"]),
)
flags = st.booleans()


@given(chunks, st.integers(1, 3), st.integers(0, 3), flags, flags, flags)
def test_only_the_owners_next_chunk_is_written(
    chunk: Chunk, epoch: int, last: int, ended: bool, cancelled: bool, absent: bool
) -> None:
    found = judge(chunk, epoch=epoch, last=last, ended=ended, cancelled=cancelled, absent=absent)
    if found is AppendStatus.OK:
        assert not ended
        assert (chunk.epoch, chunk.first) == (epoch, last + 1)
        assert not (cancelled and chunk.tokens), "what comes after the stop is neither read nor billed"
        assert chunk.terminal or not (cancelled or absent)


@given(chunks, flags, flags)
def test_an_end_without_tokens_is_always_taken_from_the_owner(chunk: Chunk, cancelled: bool, absent: bool) -> None:
    end = Chunk(first=chunk.first, epoch=chunk.epoch, terminal="cancelled")
    stands = {"epoch": chunk.epoch, "last": chunk.first - 1, "ended": False}
    assert judge(end, **stands, cancelled=cancelled, absent=absent) is AppendStatus.OK  # type: ignore[arg-type]


def test_the_worst_news_comes_first() -> None:
    chunk = Chunk(first=9, epoch=1, tokens=(Token(0, 1, "a"),))
    told = [
        judge(chunk, epoch=2, last=3, ended=True, cancelled=True, absent=True),
        judge(chunk, epoch=2, last=3, ended=False, cancelled=True, absent=True),
        judge(chunk, epoch=1, last=3, ended=False, cancelled=True, absent=True),
        judge(chunk, epoch=1, last=8, ended=False, cancelled=True, absent=True),
        judge(chunk, epoch=1, last=8, ended=False, cancelled=False, absent=True),
    ]
    assert told == ["done", "fenced", "gap", "cancel", "absent"]


def test_an_absent_reader_keeps_no_answer_from_being_complete() -> None:
    last = Chunk(first=1, epoch=1, tokens=(Token(0, 1, "a"),), terminal="completed")
    assert judge(last, epoch=1, last=0, ended=False, cancelled=False, absent=True) is AppendStatus.OK
