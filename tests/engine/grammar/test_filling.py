"""Masks that are filled several at once are those that are filled one by one."""

import numpy as np
from llguidance import LLMatcher

from axon.engine.grammar.filling import begin_together
from axon.engine.grammar.matcher import GrammarMatcher
from tests.engine.grammar.builders import EOS_ID, of_regex, pieces


def make_matcher(regex: str, taken: bytes) -> GrammarMatcher:
    matcher = GrammarMatcher(LLMatcher(pieces().tokenizer, of_regex(regex)), pieces())
    for position, token in enumerate(taken):
        matcher.learn(position, token)
    return matcher


def matchers() -> list[GrammarMatcher]:
    """Open ones, one that has ended, one that failed, and one that allows its end token alone."""
    made = [make_matcher("[a-c]{3}", b"ab"), make_matcher("x+", b""), make_matcher("ab", b"ab")]
    ended, failed = make_matcher("ab?", b"a"), make_matcher("ab", b"a")
    ended.learn(1, EOS_ID)
    failed.learn(1, ord("x"))
    return [*made, ended, failed]


def test_rows_that_are_filled_together_are_those_of_each() -> None:
    alone = [each.masks(each.num_taken, (), ((EOS_ID,),)) for each in matchers()]
    together = [each.masks(each.num_taken, (), ((EOS_ID,),)) for each in matchers()]
    rows = np.full((len(together), pieces().num_words), 7, np.uint32)
    begin_together(together, rows)()
    assert rows.tolist() == [each.rows()[0].tolist() for each in alone]
    assert [each.of(0).is_empty for each in together] == [False, False, False, True, True]
    assert [bool(each.matcher.problem) for each in together] == [bool(each.matcher.problem) for each in alone]
    assert together[0].of(0).allowed_ids() == [ord("a"), ord("b"), ord("c")]


def test_where_every_answer_has_ended_nothing_is_allowed() -> None:
    ended = [each.masks(each.num_taken, (), ((),)) for each in matchers()[3:]]
    rows = np.full((2, pieces().num_words), 7, np.uint32)
    begin_together(ended, rows)()
    assert not rows.any()
