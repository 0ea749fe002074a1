"""An answer that may call tools and must otherwise have a form: it is calls alone or text of the form alone."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llguidance import LLMatcher

from axon.domain.content.tool import CallMode, Toolbox, ToolChoice
from axon.text.grammar import Grammar, choice_grammar, json_object_grammar, regex_grammar, schema_grammar
from axon.text.grammar_check import byte_tokenizer
from axon.text.tools.formats import CallFormat, CallSplitter
from axon.text.tools.grammar import call_grammar
from tests.text.tools.test_grammar import FORMATS, NOW, WEATHER, written
from tests.text.tools.test_parsers import Found, cut, joined

TOKENIZER = byte_tokenizer()
NAMED = {"type": "object", "properties": {"name": {"type": "string"}, "parameters": {"type": "object"}}}
STRICT = {**NAMED, "required": ["name"], "additionalProperties": False}
FORMS: dict[str, tuple[Grammar, list[str], list[str]]] = {
    "object that looks like a call": (
        schema_grammar(STRICT),
        ['{"name":"x"}', '{"name":"get_weather","parameters":{"city":"x"}}'],
        ['{"nam":1}', '{"name": "x"}', "hello", ""],
    ),
    "open object": (
        schema_grammar(NAMED),
        ['{"name":"x","a":[1]}', '{"a":1}', '{"names":1}', "{}"],
        ['{"name":1}', '{"name": "x"}'],
    ),
    "any object": (json_object_grammar(), ['{"name":{"x":1}}', "{}", '{"n":2}'], ["[]"]),
    "list": (schema_grammar({"type": "array"}), ["[]", '[null,"now(",1]', "[[1]]"], ["{}"]),
    "text": (schema_grammar({"type": "string"}), ['"<tool_call>"', '"[TOOL_CALLS]"'], ["{}"]),
    "choice": (choice_grammar(["yes", "now"]), ["yes", "now"], ["nope"]),
    "regex": (regex_grammar("[a-z]{3}"), ["abc"], ["abcd"]),
}


def box(mode: CallMode = CallMode.AUTO, *, many: bool = True) -> Toolbox:
    return Toolbox(tools=(WEATHER, NOW), choice=ToolChoice(mode=mode, parallel=many))


def accepts(grammar: Grammar, text: str, reasoning: str = "") -> bool:
    matcher = LLMatcher(TOKENIZER, grammar.after(reasoning), log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    ids = list(text.encode())
    return bool(matcher.try_consume_tokens(ids) == len(ids) and matcher.is_accepting())


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", FORMS)
def test_an_answer_is_calls_or_text_of_the_form_and_nothing_else(format: CallFormat, name: str) -> None:
    form, good, bad = FORMS[name]
    grammar = call_grammar(box(), format, {}, form=form)
    call = written(format, "get_weather", '{"city":"Paris"}')
    for text in (*good, call, written(format, "now", "{}")):
        assert accepts(grammar, text), text
    for text in (*bad, written(format, "get_weather", '{"citi":1}'), written(format, "fly", "{}"), f"I look. {call}"):
        assert not accepts(grammar, text), text


@pytest.mark.parametrize("format", FORMATS)
def test_a_required_call_leaves_no_room_for_the_form(format: CallFormat) -> None:
    form, good, _ = FORMS["object that looks like a call"]
    grammar = call_grammar(box(CallMode.REQUIRED), format, {}, form=form)
    assert not grammar.form
    assert not any(accepts(grammar, text) for text in good)
    assert accepts(grammar, written(format, "now", "{}"))


@pytest.mark.parametrize("format", [CallFormat.HERMES, CallFormat.QWEN3_CODER])
def test_there_is_one_call_where_there_may_be_one_beside_a_form(format: CallFormat) -> None:
    call = written(format, "now", "{}")
    assert accepts(call_grammar(box(), format, {}, form=json_object_grammar()), f"{call}\n{call}")
    assert not accepts(call_grammar(box(many=False), format, {}, form=json_object_grammar()), f"{call}\n{call}")


def test_both_come_after_the_reasoning() -> None:
    grammar = call_grammar(box(), CallFormat.HERMES, {}, form=json_object_grammar())
    for text in ('{"a":1}', written(CallFormat.HERMES, "now", "{}")):
        assert accepts(grammar, f"<think>{{}}</think>\n{text}", "text")
        assert accepts(grammar, f"hm</think>{text}", "inside")
        assert accepts(grammar, text, "text")


def split(format: CallFormat, pieces: list[str]) -> Found:
    splitter = CallSplitter(format, {}, text_parameters=("get_weather/city",), formed=True)
    return joined([*map(splitter.push, pieces), splitter.flush()])


TEXTS = [
    '{"note":"<function=f>\\n<parameter=a>\\n1</parameter></function>"}',
    '{"note":"<tool_call>{}</tool_call>"}',
    '{"name":"get_weather","parameters":{"city":"Paris"}}',
    '{"name":"get_weather","arguments":{"city":"Paris"}}',
    '"[TOOL_CALLS]get_weather{}"',
    "[1,2]",
    "yes",
    "",
]


@given(st.sampled_from(FORMATS), st.sampled_from(TEXTS), st.data())
def test_text_of_a_form_is_never_taken_for_a_call(format: CallFormat, text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    assert split(format, cut(text, cuts)) == (text, [])


@given(st.sampled_from(FORMATS), st.sampled_from(["", "\n", "  "]), st.data())
def test_calls_are_found_where_a_form_might_have_come(format: CallFormat, before: str, data: st.DataObject) -> None:
    text = before + written(format, "get_weather", '{"city":"Paris","days":3}')
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    said, [(name, arguments)] = split(format, cut(text, cuts))
    assert (said, name, json.loads(arguments)) == ("", "get_weather", {"city": "Paris", "days": 3})
