"""Plain text: all its characters and lines are there, and none of it is a tag."""

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from axon.gateway.pages.rendering.allowed import only_allowed
from axon.gateway.pages.rendering.plain import PIECE_LINES, plain


class Read(HTMLParser):
    """What a browser would show."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text, self.tags = "", set[str]()
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.text += "\n" if tag == "br" else ""

    def handle_endtag(self, tag: str) -> None:
        self.text += "\n" if tag == "p" else ""

    def handle_data(self, data: str) -> None:
        self.text += data.removesuffix("\n") if data == "\n" else data


@given(st.text(st.sampled_from("<>&\"'ab \n#*"), max_size=200))
def test_it_reads_as_it_was_written(text: str) -> None:
    read = Read(plain(text))
    assert read.text == text + "\n"
    assert read.tags <= {"p", "br"}
    assert only_allowed(plain(text)).count("<p") == plain(text).count("<p")


def test_a_long_text_is_cut_into_pieces() -> None:
    assert plain("a\n" * (2 * PIECE_LINES)).count("<p") == 3
