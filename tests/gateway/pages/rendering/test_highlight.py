"""Highlighting: a short list of languages, by the names that models give them, and nothing that a text could change."""

import re
from pathlib import Path

import pytest

from axon.gateway.pages.rendering.allowance import Allowance
from axon.gateway.pages.rendering.highlight import LANGUAGES, coloured
from axon.gateway.pages.rendering.markdown import render


@pytest.mark.parametrize("name", LANGUAGES)
def test_every_language_of_the_list_is_coloured(name: str) -> None:
    assert '<span class="' in coloured('x = "1" # 2\n<a b="c">\n[d]\n+e: 1\n', name)


# The interruption may fall into a callback of the garbage collector, where Python drops it: then the next one counts.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("lexer", sorted(set(LANGUAGES.values())))
def test_every_lexer_can_be_interrupted_and_works_as_before_afterwards(lexer: str) -> None:
    text = 'x = "1" # 2\n<a b="c">\n[d]\n+e: (1) { $f }\n'
    before = coloured(text, lexer)
    for piece in (text, "(", '"', "a", " "):  # whole words and lines, and what may be one long word or line
        Allowance(0.002, chars=1 << 40).within(lambda piece=piece: coloured(piece * 20_000, lexer))  # type: ignore[misc]
    assert Allowance(0.002, chars=1 << 40).within(lambda: coloured(text * 20_000, lexer)) is None
    assert coloured(text, lexer) == before


def test_names_are_taken_in_any_case_and_others_are_not_coloured() -> None:
    assert coloured("x", "PYTHON") == coloured("x", "python")
    assert coloured("x", "") == coloured("x", "brainfuck") == ""


def test_a_text_that_names_many_languages_changes_nothing_for_the_next() -> None:
    """Four hundred names once filled what was remembered of languages, and no code was coloured from then on."""
    before = render("```go\nfunc main() {}\n```")
    render("\n".join(f"```language{number}\nx\n```" for number in range(400)))
    assert render("```go\nfunc main() {}\n```") == before
    assert '<span class="' in before


def test_the_docs_name_the_languages_of_the_list() -> None:
    text = (Path(__file__).resolve().parents[4] / "docs" / "chat.md").read_text("utf-8")
    said = re.search(r"code in colours for (.+?)\. Code in other languages", text)
    assert said is not None
    names = [name.lower() for name in re.split(", | and ", said[1])]
    lexers = {LANGUAGES.get(name) or LANGUAGES[name.removesuffix("s")] for name in names}
    assert lexers == set(LANGUAGES.values())
    assert len(names) == len(lexers)
