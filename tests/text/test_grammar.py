"""Grammars made of schemas, regexes, lists and rules: what they let through, with and without reasoning before."""

import itertools
import json
from collections.abc import Mapping
from typing import Any

import pytest
from llguidance import LLMatcher, LLTokenizer

from axon.errors import InvalidInput
from axon.text.grammar import (
    Grammar,
    choice_grammar,
    client_grammar,
    embedded,
    json_object_grammar,
    lark_grammar,
    quoted,
    regex_grammar,
    schema_grammar,
)
from axon.text.grammar_check import GrammarCheck, byte_tokenizer

POINT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}


@pytest.fixture(scope="module")
def tokens() -> LLTokenizer:
    return byte_tokenizer()


@pytest.fixture(scope="module")
def check() -> GrammarCheck:
    return GrammarCheck()


def allows(tokens: LLTokenizer, grammar: str, text: str) -> bool:
    """Whether the grammar lets exactly this text through."""
    matcher = LLMatcher(tokens, grammar, log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    return matcher.try_consume_tokens([*text.encode()]) == len(text.encode()) and matcher.is_accepting()


@pytest.mark.parametrize(
    ("grammar", "good", "bad"),
    [
        (schema_grammar(POINT), '{"x":1}', '{"x": 1}'),
        (schema_grammar({**POINT, "x-guidance": {"whitespace_flexible": True}}), '{"x":1}', '{"x": 1}'),
        (json_object_grammar(), '{"a":[1,"b",null]}', "[1]"),
        (regex_grammar("[0-9]{3}"), "123", "12"),
        (regex_grammar("^[0-9]+$"), "123", "^1$"),
        (regex_grammar(r"a\$"), "a$", "a"),
        (choice_grammar(["yes", 'a "b"\n\\', "é😀\t"]), "é😀\t", "no"),
        (choice_grammar(["yes", 'a "b"\n\\']), 'a "b"\n\\', "a"),
        (client_grammar('start: "a" digit\ndigit: /[0-9]/\n'), "a1", "a"),
        (client_grammar('root ::= "a" | "b" root\n'), "bba", "bb"),
        (client_grammar('start: "<b>" "%json" "@a" // %json\n'), "<b>%json@a", "<b>"),
        (client_grammar('start: a\na: b\nb: a "1" | "x"'), "x11", "1"),
        (client_grammar('start: "a"~2..3 [B] (C | start)?\nB: "b" C~2\nC: "c"\n'), "aabccaa", "a"),
        (lark_grammar(f"start: {quoted('<tool_call>')} {embedded(POINT)}"), '<tool_call>{"x":1}', '{"x":1}'),
    ],
)
def test_a_grammar_lets_through_what_it_describes(tokens: LLTokenizer, grammar: Grammar, good: str, bad: str) -> None:
    assert allows(tokens, grammar.after(""), good)
    assert not allows(tokens, grammar.after(""), bad)


@pytest.mark.parametrize(
    ("mode", "text", "allowed"),
    [
        ("text", '{"x":1}', True),
        ("text", '<think>Is {"x": 2} right?\nNo.</think>\n\n{"x":1}', True),
        ("text", "<think>hm</think>", False),
        ("text", 'hm</think>{"x":1}', False),
        ("inside", 'hm </thin </think>{"x":1}', True),
        ("inside", '</think>\n{"x":1}', True),
        ("inside", '{"x":1}', False),
        ("inside", 'a</think>b</think>{"x":1}', False),
    ],
)
def test_a_grammar_begins_after_the_reasoning(tokens: LLTokenizer, mode: str, text: str, allowed: bool) -> None:
    assert allows(tokens, schema_grammar(POINT).after(mode), text) is allowed


@pytest.mark.parametrize("grammar", [regex_grammar("[0-9]+"), choice_grammar(["1", "2"]), client_grammar('start: "1"')])
def test_every_kind_of_grammar_can_follow_reasoning(tokens: LLTokenizer, grammar: Grammar) -> None:
    assert allows(tokens, grammar.after("inside"), "hm</think>1")


@pytest.mark.parametrize(
    "text",
    [
        'start: %json {"type": "string"}',
        "start: <|im_end|>",
        "start: <[5]>",
        "start: @answer",
        '%llguidance {}\nstart: "a"',
        'start: "a"\n%import common.INT',
        "start: /(a{1000}){1000}/",
        "start: start",
        'start: "%s" start' % ("a" * 5_000),
        'start: "x" | "y" e\ne: "z" e\n',
        "start: a\n" + "".join(f"{a}: {b} {b}\n" for a, b in itertools.pairwise("abcdefghijklmnopq")) + 'q: "x"',
        "start: A\n" + "".join(f"{a}: ({b} | {b})*\n" for a, b in itertools.pairwise("ABCDEFGHIJKLMNO")) + 'O: "x"',
        'start: ("a"~1000)~1000',
        "root ::= root",
        "root ::= " + '"a" ' * 7_000,
    ],
)
def test_a_clients_grammar_has_rules_alone(text: str) -> None:
    with pytest.raises(InvalidInput):
        client_grammar(text)


@pytest.mark.parametrize("regex", ["(a{1000}){1000}", "a" * 10_000])
def test_a_regex_that_is_too_large_is_refused(regex: str) -> None:
    with pytest.raises(InvalidInput, match="too large"):
        regex_grammar(regex)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"unevaluatedProperties": False}, "unevaluatedProperties"),
        ({"uniqueItems": True}, "uniqueItems"),
        ({"not": {}}, '"not"'),
        ({"type": "string", "format": "colour"}, "Unknown format: colour"),
        ({"type": "string", "pattern": "(?=a)b"}, "look-around"),
        ({"type": "string", "pattern": "("}, "unclosed group"),
        ({"type": "text"}, "Invalid type"),
        ({"$ref": "#/nowhere"}, "nowhere"),
        ({"$ref": "#"}, "no text at all"),
        ({"enum": []}, "Unsatisfiable"),
        ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "incompatible"),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "one without an end"),
        ({"oneOf": [{"type": "string"}, {"type": "string", "minLength": 2}]}, "use 'anyOf'"),
    ],
)
def test_the_check_says_what_is_unsupported(check: GrammarCheck, schema: Mapping[str, Any], why: str) -> None:
    assert why in check.problem(schema_grammar(schema))


@pytest.mark.parametrize("grammar", [schema_grammar(POINT), json_object_grammar(), regex_grammar("a*")])
def test_the_check_has_nothing_against_a_good_grammar(check: GrammarCheck, grammar: Grammar) -> None:
    assert check.problem(grammar) == ""


def test_alternatives_that_a_tag_tells_apart_may_be_a_oneof(check: GrammarCheck) -> None:
    kinds = [
        {
            "type": "object",
            "properties": {"kind": {"const": kind}, kind: {"type": "string"}},
            "required": ["kind", kind],
        }
        for kind in ("cat", "dog")
    ]
    assert check.problem(schema_grammar({"oneOf": kinds})) == ""


def test_the_text_of_a_grammar_is_json() -> None:
    assert list(json.loads(schema_grammar(POINT).after("text"))) == ["grammars"]
