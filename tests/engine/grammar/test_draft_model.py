"""The draft model knows no grammar: what the grammar forbids is cut from its drafts, and no token changes."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.builders import make_add
from tests.engine.grammar.builders import make_core, of_regex, of_schema, run, text_of, tokens
from tests.engine.grammar.test_following import regexes, samplings


@settings(deadline=None, max_examples=40)
@given(regex=regexes, options=samplings, seed=st.integers(0, 99), favourites=st.sampled_from([b"", b"ab1"]))
def test_answers_with_a_draft_model_are_those_without(
    regex: str, options: dict[str, Any], seed: int, favourites: bytes
) -> None:
    def answer(draft: bytes | None) -> list[int]:
        core = make_core(favourites=b"ab1", draft=draft)
        add = make_add("a", prompt=[seed, 1, 2], max_tokens=60, seed=seed, grammar=of_regex(regex), **options)
        return tokens(run(core, [add])[0]["a"])

    assert answer(favourites) == answer(None)


def test_what_the_grammar_allows_of_the_drafts_is_kept() -> None:
    """Letters come in any order, so that neither text nor grammar says which is next; the models are equal."""
    grammar = of_regex("[abc]{40}")
    core = make_core(favourites=b"abc", draft=b"abc")
    [answer] = run(core, [make_add("a", prompt=[5, 1, 2], max_tokens=60, temperature=1.0, grammar=grammar)])[0].values()
    assert len(text_of(tokens(answer))) == 40
    counters = core.step().counters
    assert counters.model_accepted > 10


def test_an_answer_follows_its_schema_with_both_kinds_of_drafts() -> None:
    grammar = of_schema({"type": "array", "items": {"enum": ["ab", "abc", 12]}, "minItems": 8, "maxItems": 8})
    without = make_core(favourites=b"ab1", draft=None)
    with_both = make_core(favourites=b"ab1", draft=b"ab1", draft_price=0.05)
    add = make_add("a", prompt=[5, 1, 2], max_tokens=200, temperature=1.0, grammar=grammar)
    assert tokens(run(with_both, [add])[0]["a"]) == tokens(run(without, [add])[0]["a"])
    counters = with_both.step().counters
    assert counters.drafted > 0
