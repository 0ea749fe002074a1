"""Regexes, lists of texts and grammars: a finished answer of the default model is what they describe, which Python's
own ``re`` and small parsers of ours decide; each grammar of a regular language has the regex that it equals.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from llguidance import LLMatcher

from axon.sessions.compiler import Compiler
from axon.sessions.grammars import Grammars
from axon.text.grammar import Grammar, choice_grammar, client_grammar, regex_grammar
from axon.text.grammar_check import byte_tokenizer
from tests import long
from tests.corpus.asker import PROMPTS, Answer, Asker

FORMS = json.loads(Path(__file__).with_name("forms.json").read_text())
PARTS = 3
"""Each form is asked for this often in a whole run, with other prompts; a short run does a part of the forms once."""


def is_nested(text: str) -> bool:
    depth = text.count("(")
    return text == "(" * depth + "x" + ")" * depth


def is_arithmetic(text: str) -> bool:
    """Whether Python reads it as an expression of the numbers and signs that the grammar has."""
    allowed = ast.Expression, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Constant
    return all(isinstance(node, allowed) for node in ast.walk(ast.parse(text, mode="eval")))


CHECKS: dict[str, Callable[[str], bool]] = {"nested": is_nested, "arithmetic": is_arithmetic}


def matches(regex: str) -> Callable[[str], bool]:
    return lambda text: re.fullmatch(regex, text) is not None


def of_grammar(case: dict[str, Any]) -> Callable[[str], bool]:
    return CHECKS[case["check"]] if "check" in case else matches(case["regex"])


def forms() -> list[tuple[Grammar, Callable[[str], bool]]]:
    """Every grammar, with what decides whether a text is of it."""
    found = [(regex_grammar(regex), matches(regex)) for regex in FORMS["regexes"]]
    found += [(choice_grammar(choices), choices.__contains__) for choices in FORMS["choices"]]
    return [*found, *((client_grammar(case["grammar"]), of_grammar(case)) for case in FORMS["grammars"])]


def check(grammar: Grammar, is_right: Callable[[str], bool], answer: Answer) -> None:
    if answer.is_finished:
        assert is_right(answer.text), (grammar, answer)
        return
    matcher, text = LLMatcher(byte_tokenizer(), grammar.after(""), log_level=0), answer.text.encode()
    assert matcher.try_consume_tokens([*text]) == len(text), (grammar, answer)


@pytest.mark.model
@pytest.mark.timeout(3600)
async def test_a_finished_answer_is_of_its_form(asker: Asker) -> None:
    asked = forms() if long.whole() else forms()[::PARTS]
    grammars, counts = Grammars(Compiler()), Counter[str]()
    for grammar, _ in asked:
        await grammars.of("corpus").checked(grammar, param="form")
    await grammars.aclose()
    prompts = PROMPTS if long.whole() else PROMPTS[:1]
    answers = asker.answers([grammar for grammar, _ in asked], max_tokens=64, prompts=prompts)
    for (grammar, is_right), each in zip(asked, answers, strict=True):
        for answer in each:
            counts["finished" if answer.is_finished else "unfinished"] += 1
            check(grammar, is_right, answer)
    print(f"{len(asked)} forms: {dict(counts)}")
    assert counts["finished"] > 4 * counts["unfinished"]
