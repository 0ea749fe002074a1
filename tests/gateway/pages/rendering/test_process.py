"""What a process that renders texts answers."""

import pytest

from axon.gateway.pages.rendering import answers, process
from axon.gateway.pages.rendering.answers import NOT_FORMATTED, answer_of, html_in
from axon.gateway.pages.rendering.process import answer


def test_a_text_comes_back_as_html() -> None:
    assert html_in(answer(b"*a*")) == "<p><em>a</em></p>\n"
    assert html_in(answer("ä".encode())) == "<p>ä</p>\n"
    assert html_in(answer(b"")) == ""


def test_html_beyond_its_bound_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MAX_HTML_BYTES", 10)
    assert html_in(answer_of("<p>23456</p>"[:10])) == "<p>23456</"
    assert answer(b"more than ten bytes") == NOT_FORMATTED
    assert html_in(NOT_FORMATTED) is None
    assert html_in(b"") is None


def test_an_error_of_a_library_is_an_answer_without_html(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(text: str) -> str:
        raise RecursionError(text)

    monkeypatch.setattr(process, "render", fails)
    assert answer(b"a") == NOT_FORMATTED


def test_want_of_memory_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(text: str) -> str:
        raise MemoryError

    monkeypatch.setattr(process, "render", fails)
    with pytest.raises(MemoryError):
        answer(b"a")
