"""Grammars of calls: they accept what the parsers find, and nothing that breaks a schema."""

import json

import pytest
from llguidance import LLMatcher

from axon.domain.content.tool import CallMode, Tool, Toolbox, ToolChoice
from axon.text.grammar_check import byte_tokenizer
from axon.text.tools.formats import CallFormat, CallSplitter
from axon.text.tools.grammar import call_grammar, needs_grammar

TOKENIZER = byte_tokenizer()
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["C", "F"]}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = Tool(name="get_weather", parameters=json.dumps(SCHEMA), strict=True)
NOW = Tool(name="now")
FORMATS = [format for format in CallFormat if format is not CallFormat.HARMONY]
"""Those that are written as text; harmony's headers are control tokens (``tests/text/test_harmony.py``)."""


def written(format: CallFormat, name: str, arguments: str) -> str:
    """A call of one function in a format; ``arguments`` are compact JSON."""
    value = json.loads(arguments)
    match format:
        case CallFormat.HERMES:
            return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'
        case CallFormat.LLAMA_JSON:
            return f'{{"name": "{name}", "parameters": {arguments}}}'
        case CallFormat.MISTRAL:
            return f'[TOOL_CALLS][{{"name": "{name}", "arguments": {arguments}}}]'
        case CallFormat.PYTHONIC:
            return (
                f"[{name}("
                + ", ".join(f"{key}={json.dumps(each, ensure_ascii=False)}" for key, each in value.items())
                + ")]"
            )
        case CallFormat.QWEN3_CODER:
            parameters = "".join(
                f"<parameter={key}>\n{each if isinstance(each, str) else json.dumps(each)}\n</parameter>\n"
                for key, each in value.items()
            )
            return f"<tool_call>\n<function={name}>\n{parameters}</function>\n</tool_call>"
        case CallFormat.HARMONY:
            raise AssertionError("it is not written as text")


def accepts(format: CallFormat, text: str, *tools: Tool, mode: CallMode = CallMode.REQUIRED, many: bool = True) -> bool:
    toolbox = Toolbox(tools=tools, choice=ToolChoice(mode=mode, parallel=many))
    matcher = LLMatcher(TOKENIZER, call_grammar(toolbox, format, {}).after(""), log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    ids = list(text.encode())
    return bool(matcher.try_consume_tokens(ids) == len(ids) and matcher.is_accepting())


GOOD = ['{"city":"Paris"}', '{"city":"Zürich","days":3,"unit":"F"}', '{"city":"a \\"b\\"","unit":"C"}']
BAD = ['{"days":3}', '{"city":"x","unit":"K"}', '{"city":"x","days":"3"}', '{"city":"x","other":1}']


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("mode", [CallMode.REQUIRED, CallMode.AUTO])
def test_it_takes_the_calls_that_follow_their_schema_and_no_others(format: CallFormat, mode: CallMode) -> None:
    for arguments in GOOD:
        text = written(format, "get_weather", arguments)
        assert accepts(format, text, WEATHER, NOW, mode=mode), text
    for arguments in BAD:
        if format is CallFormat.QWEN3_CODER and '"3"' in arguments:
            continue  # its values are bare, so that a number and its text look the same
        text = written(format, "get_weather", arguments)
        assert not accepts(format, text, WEATHER, NOW, mode=mode), text
    assert accepts(format, written(format, "now", "{}"), WEATHER, NOW, mode=mode)
    assert not accepts(format, written(format, "fly", "{}"), WEATHER, NOW, mode=mode)


@pytest.mark.parametrize("format", FORMATS)
def test_text_is_free_unless_a_call_is_required(format: CallFormat) -> None:
    for text in ("", "Hello.", "a < b, 'c' and <tool"):
        assert accepts(format, text, WEATHER, mode=CallMode.AUTO), text
        assert not accepts(format, text, WEATHER), text


@pytest.mark.parametrize("format", [CallFormat.HERMES, CallFormat.MISTRAL, CallFormat.QWEN3_CODER])
def test_text_may_come_before_a_call_that_is_not_required(format: CallFormat) -> None:
    text = "I look.\n" + written(format, "now", "{}")
    assert accepts(format, text, NOW, mode=CallMode.AUTO)
    assert not accepts(format, text, NOW)


@pytest.mark.parametrize("format", [CallFormat.HERMES, CallFormat.QWEN3_CODER])
def test_there_is_one_call_where_there_may_be_one(format: CallFormat) -> None:
    call = written(format, "now", "{}")
    for mode in (CallMode.AUTO, CallMode.REQUIRED):
        assert accepts(format, f"{call}\n{call}", NOW, mode=mode)
        assert not accepts(format, f"{call}\n{call}", NOW, mode=mode, many=False)


@pytest.mark.parametrize("format", FORMATS)
def test_the_parser_finds_what_the_grammar_makes(format: CallFormat) -> None:
    for arguments in GOOD:
        splitter = CallSplitter(format, {}, text_parameters=("get_weather/city",))
        pieces = [*splitter.push(written(format, "get_weather", arguments)).calls, *splitter.flush().calls]
        assert pieces[0].name == "get_weather"
        assert json.loads("".join(piece.arguments for piece in pieces)) == json.loads(arguments)


def test_the_named_function_is_called_and_no_other() -> None:
    toolbox = Toolbox(tools=(WEATHER, NOW), choice=ToolChoice(mode=CallMode.REQUIRED, names=("now",)))
    grammar = call_grammar(toolbox, CallFormat.HERMES, {}).text
    assert "now" in grammar
    assert "get_weather" not in grammar


@pytest.mark.parametrize("marks", [{"[TOOL_CALLS]": 5}, {"[TOOL_CALLS]": 5, "[ARGS]": 6, "[CALL_ID]": 7}])
@pytest.mark.parametrize("mode", [CallMode.REQUIRED, CallMode.AUTO])
def test_control_tokens_are_named_by_their_ids(marks: dict[str, int], mode: CallMode) -> None:
    toolbox = Toolbox(tools=(WEATHER,), choice=ToolChoice(mode=mode))
    grammar = call_grammar(toolbox, CallFormat.MISTRAL, marks)
    assert not LLMatcher(TOKENIZER, grammar.after(""), log_level=0).is_error()
    assert "<[5]>" in grammar.text
    assert ("<[6]>" in grammar.text) == ("[ARGS]" in marks)


def test_only_required_and_strict_calls_are_constrained() -> None:
    assert not needs_grammar(Toolbox(tools=(NOW,)))
    assert needs_grammar(Toolbox(tools=(NOW, WEATHER)))
    assert needs_grammar(Toolbox(tools=(NOW,), choice=ToolChoice(mode=CallMode.REQUIRED)))
    assert not needs_grammar(Toolbox(tools=(WEATHER,), choice=ToolChoice(mode=CallMode.NONE)))
