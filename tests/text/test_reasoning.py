"""Thinking and answer are told apart wherever the text is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.text.reasoning import ReasoningSplitter

CASES = [
    ("Hello", "Hello", ""),
    ("<think>hmm</think>Hello", "Hello", "hmm"),
    ("\n<think>\nhmm\n</think>\n\nHello", "Hello", "hmm\n"),
    ("<think></think>Hello", "Hello", ""),
    ("<think>never closed </thin", "", "never closed </thin"),
    ("<thin air", "<thin air", ""),
    ("No <think>hmm</think> here", "No <think>hmm</think> here", ""),
    ("<think>a</think>b<think>c</think>", "b<think>c</think>", "a"),
    ("  ", "  ", ""),
    ("<think", "<think", ""),
    ("", "", ""),
]


def split(pieces: list[str], *, inside: bool = False) -> tuple[str, str]:
    splitter = ReasoningSplitter(inside=inside)
    parts = [*map(splitter.push, pieces), splitter.flush()]
    return "".join(answer for answer, _ in parts), "".join(thinking for _, thinking in parts)


@pytest.mark.parametrize(("text", "answer", "thinking"), CASES)
def test_a_block_that_the_text_begins_with_is_the_thinking(text: str, answer: str, thinking: str) -> None:
    assert split([text]) == (answer, thinking)
    assert split(list(text)) == (answer, thinking)


def test_a_block_that_the_prompt_has_opened_is_closed_by_the_text() -> None:
    assert split(["\nhmm</th", "ink> Hello"], inside=True) == ("Hello", "hmm")


@given(st.lists(st.sampled_from(["<think>", "</think>", "<thi", "nk>", "</", "a", " ", "\n"]), max_size=12), st.data())
def test_the_parts_do_not_depend_on_the_cuts(words: list[str], data: st.DataObject) -> None:
    text = "".join(words)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert split(pieces) == split([text])
