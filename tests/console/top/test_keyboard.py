"""Bytes of a terminal become keys, however they are cut; the terminal is afterwards as it was before."""

import os
import termios
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.console.top.keyboard import Keys, single_keys


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"q", ["q"]),
        (b"ab\r", ["a", "b", "enter"]),
        (b"\x1b", ["esc"]),
        (b"\x1b\x1b", ["esc", "esc"]),
        (b"\x1b[A\x1bOB\x1b[Z", ["up", "down", "backtab"]),
        (b"\x1b[1;5Dx", ["x"]),
        (b"\t\x7f\x08\x15\x03", ["tab", "backspace", "backspace", "ctrl-u", "ctrl-c"]),
        ("zürich日".encode(), ["z", "ü", "r", "i", "c", "h", "日"]),
        (b"\xff\xfea", ["a"]),
        (b"\x01\x02a", ["a"]),
    ],
)
def test_bytes_are_keys(data: bytes, keys: list[str]) -> None:
    assert Keys().take(data) == keys


@given(st.text(st.characters(min_codepoint=0x20, exclude_characters="\x7f"), max_size=20), st.data())
def test_characters_may_come_in_parts(text: str, draw: st.DataObject) -> None:
    whole, keys = text.encode(), Keys()
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    parts = [whole[start:end] for start, end in pairwise([0, *cuts, len(whole)])]
    assert [key for part in parts for key in keys.take(part)] == list(text)


@given(st.lists(st.binary(max_size=40), max_size=10))
def test_no_bytes_break_it_and_little_is_kept(parts: list[bytes]) -> None:
    keys = Keys()
    for part in parts:
        assert all(keys.take(part))
        assert len(keys._kept) <= 16


def _fail(terminal: int) -> None:
    with single_keys(terminal):
        assert not termios.tcgetattr(terminal)[3] & (termios.ECHO | termios.ICANON)
        raise RuntimeError("boom")


def test_a_terminal_is_as_before_when_its_user_fails() -> None:
    master, slave = os.openpty()
    try:
        before = termios.tcgetattr(slave)
        with pytest.raises(RuntimeError, match="boom"):
            _fail(slave)
        assert termios.tcgetattr(slave) == before
    finally:
        os.close(master)
        os.close(slave)
