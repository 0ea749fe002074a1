"""Stop strings are cut at the same place however the text is split."""

from hypothesis import given
from hypothesis import strategies as st

from axon.text.stops import StopScanner


def cut_naively(text: str, stops: list[str]) -> tuple[str, bool]:
    for end in range(len(text) + 1):
        ending = [stop for stop in stops if stop and text[:end].endswith(stop)]
        if ending:
            return text[: end - max(map(len, ending))], True
    return text, False


def scan(pieces: list[str], stops: list[str]) -> tuple[str, bool]:
    scanner = StopScanner(stops)
    shown = ""
    for piece in pieces:
        emitted, hit = scanner.push(piece)
        shown += emitted
        if hit:
            return shown, True
    return shown + scanner.flush(), False


@given(
    st.lists(st.text("abc", max_size=4), max_size=12),
    st.lists(st.text("abc", max_size=4), max_size=4),
)
def test_any_split_is_cut_like_the_whole_text(pieces: list[str], stops: list[str]) -> None:
    assert scan(pieces, stops) == cut_naively("".join(pieces), stops)


def test_text_that_may_begin_a_stop_string_is_held_back() -> None:
    scanner = StopScanner(["\n\nUser"])
    assert scanner.push("Hello\n") == ("Hello", False)
    assert scanner.push("\nUs") == ("", False)
    assert scanner.push("ing") == ("\n\nUsing", False)


@given(st.lists(st.text("abc", max_size=4), max_size=12), st.lists(st.text("abc", max_size=4), max_size=4))
def test_the_matched_string_is_told_and_is_what_follows_the_shown_text(pieces: list[str], stops: list[str]) -> None:
    text, scanner = "".join(pieces), StopScanner(stops)
    shown = "".join(scanner.push(piece)[0] for piece in pieces)
    if scanner.matched:
        assert scanner.matched in stops
        assert text.startswith(shown + scanner.matched)
    else:
        assert shown + scanner.flush() == text


def test_after_a_hit_nothing_comes_any_more() -> None:
    scanner = StopScanner(["."])
    assert scanner.push("One. Two.") == ("One", True)
    assert scanner.push("Three") == ("", True)
    assert scanner.flush() == ""


def test_without_stop_strings_everything_passes_at_once() -> None:
    assert StopScanner([]).push("abc") == ("abc", False)
