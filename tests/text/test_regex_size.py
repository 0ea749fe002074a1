"""The size of a regex with its repeats written out."""

import pytest

from axon.text.regex_size import written_out


@pytest.mark.parametrize(
    ("regex", "size"),
    [
        ("abc", 3),
        ("a{3}", 3),
        ("(ab){3}", 6),
        ("((a{10}){10}){10}", 1000),
        ("[a-z]{2,5}x", 6),
        (r"\d{3}-\d{4}", 8),
        ("[]a]{3}", 3),
        (r"[^\]]{9}", 9),
        ("(?:x{2}y){3}{4}", 60),
        (r"\({5}", 5),
        ("a{1000}{1000}{1000}", 10**9),
    ],
)
def test_a_repeat_counts_for_as_often_as_it_is_written(regex: str, size: int) -> None:
    assert written_out(regex) == size


@pytest.mark.parametrize("text", ["", "(((", ")))", "{3}", "[", "\\", "a{", "(a{2}"])
def test_what_is_no_regex_has_some_size_too(text: str) -> None:
    assert written_out(text) >= 0
