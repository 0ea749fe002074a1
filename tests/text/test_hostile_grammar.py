"""Texts that are sent to be expensive cost no more than others of their length, and hide nothing."""

import pytest

from axon.domain.grammar import LIMITS, limits_of
from axon.errors import InvalidInput
from axon.text.grammar import client_grammar, regex_grammar, schema_grammar
from axon.text.grammar_check import GrammarCheck
from axon.text.regex_size import written_out
from axon.text.schema_bounds import SchemaRefused, check_schema

Schema = dict[str, object]
LONG = 16_000


def in_a_row(levels: int) -> Schema:
    """A schema whose definitions each lead to the next one."""
    defs = {f"a{level}": {"$ref": f"#/$defs/a{level + 1}"} for level in range(levels)}
    return {"$ref": "#/$defs/a0", "$defs": {**defs, f"a{levels}": {"type": "string"}}}


def merged(levels: int) -> Schema:
    """Two equal members of an ``allOf``, each property of which has two properties of its own, and so on."""
    defs: Schema = {f"a{levels}": {"type": "integer"}}
    for level in range(levels):
        ref = {"$ref": f"#/$defs/a{level + 1}"}
        defs[f"a{level}"] = {"properties": {"x": ref, "y": ref}}
    return {"allOf": [{"$ref": "#/$defs/a0"}] * 2, "$defs": defs}


@pytest.mark.parametrize("text", ["[" * 200_000, "[:a" * 100_000, "[\\]" * 100_000])
def test_the_size_of_brackets_without_an_end_is_found_in_one_pass(text: str) -> None:
    assert 0 < written_out(text) <= len(text)


@pytest.mark.parametrize("regex", ["a{0000000000001000}", "a{ 1000 }", "a{1, 1000}"])
def test_a_repeat_counts_however_its_number_is_written(regex: str) -> None:
    assert written_out(regex) == 1000


def test_repeats_of_repeats_are_refused_though_their_size_has_thousands_of_digits() -> None:
    regex = "(" * 630 + "a" + "){999999999}" * 630
    with pytest.raises(InvalidInput, match="too large"):
        regex_grammar(regex)
    with pytest.raises(SchemaRefused, match="too large"):
        check_schema({"type": "string", "pattern": regex})


@pytest.mark.parametrize(
    "rest", [":" * LONG, "<" * LONG, "\n" * LONG, " \n" * (LONG // 2), "/\\" * (LONG // 2), "[" * LONG]
)
@pytest.mark.parametrize("head", ['start: "a"\n', 'root ::= "a"\n'])
def test_a_grammar_is_read_in_one_pass_whatever_follows_its_first_rule(head: str, rest: str) -> None:
    with pytest.raises(InvalidInput):
        client_grammar(f"{head}{rest}!")


@pytest.mark.parametrize(
    "text",
    [
        'start: "a"\n | %json {"type": "object"}',
        'start: "a"\n | %regex {"substring_chunks": ["a"]}',
        'start: "a" |\n %json {}',
        'start: "a\n" | %json {} "b"',
        'start: /a\\/ | %json {} | "b"',
        'start: "a"\n | @answer',
        'start: "a"\n | <[12]>',
        'start: "a"\n | <|im_end|>',
    ],
)
def test_a_grammar_hides_no_directive_in_another_line_or_a_text_without_an_end(text: str) -> None:
    with pytest.raises(InvalidInput):
        client_grammar(text)


@pytest.mark.parametrize("text", ['start: "%json" | "<|im_end|>" # %json\n | /@\\/<a>/', 'root ::= "%json" | [^"<%@/]'])
def test_what_a_grammar_quotes_is_no_directive(text: str) -> None:
    assert client_grammar(text)


@pytest.mark.parametrize("schema", [in_a_row(1500), merged(60), merged(14)], ids=["row", "deep", "wide"])
def test_a_schema_whose_references_lead_too_far_is_refused(schema: Schema) -> None:
    with pytest.raises(SchemaRefused):
        check_schema(schema)


def test_a_schema_that_merges_with_itself_is_refused() -> None:
    ref = {"$ref": "#/$defs/a"}
    with pytest.raises(SchemaRefused):
        check_schema({"allOf": [ref, ref], "$defs": {"a": {"properties": {"x": ref, "y": ref}}}})


@pytest.mark.parametrize(
    "schema",
    [
        {"const": -(2**63)},
        {"enum": [1, -(2**63) + 1]},
        {"const": {"a": [-(2**63) + 100]}},
        {"type": "integer", "minimum": -(2**63), "maximum": -(2**63)},
    ],
)
def test_a_number_that_the_compiler_does_not_survive_is_refused_before_it(schema: Schema) -> None:
    with pytest.raises(SchemaRefused, match="less than"):
        check_schema(schema)


@pytest.mark.parametrize("text", ['start: start start | "a"', 'root ::= root root | "a"'])
def test_the_rules_of_a_client_may_be_less_ambiguous_than_what_is_made_of_a_schema(text: str) -> None:
    grammar = client_grammar(text)
    assert limits_of(grammar.after("inside")).max_items_in_row < LIMITS.max_items_in_row
    assert limits_of(schema_grammar({"type": "object"}).after("")) == LIMITS
    assert not GrammarCheck().problem(grammar)
