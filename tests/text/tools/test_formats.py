"""Which format of tool calls a chat template teaches."""

import pytest

from axon.text.tools.formats import CallFormat, call_format_of, marks_of
from tests.text.builders import make_tokenizer

TEMPLATES = {
    '{% if tools %}…<tool_call>\\n{\\"name\\": <function-name>…{% endif %}': CallFormat.HERMES,
    "{% if tools %}<tool_call>\n<function=example>{% endif %}": CallFormat.QWEN3_CODER,
    '{%- if tools %}Respond in the format {"name": function name, "parameters": dictionary}': CallFormat.LLAMA_JSON,
    '{{ \'Respond in the format {\\"name\\": function name, \\"parameters\\"\' }}{{ tools }}': CallFormat.LLAMA_JSON,
    "{% if tools %}put it in the format of [func_name1(params_name1=…)]": CallFormat.PYTHONIC,
    "{{ '[AVAILABLE_TOOLS]' }}{{ tools }}{{ '[TOOL_CALLS]' }}": CallFormat.MISTRAL,
    "{% if tools %}# Tools{% endif %}<|channel|>commentary <|constrain|>json<|message|>": CallFormat.HARMONY,
    "{{ tools | tojson }} in a format that nobody knows": None,
    "{{ messages }} <tool_call>": None,
}


@pytest.mark.parametrize(("source", "format"), TEMPLATES.items())
def test_a_template_says_its_format(source: str, format: CallFormat | None) -> None:
    assert call_format_of(source) == format


def test_words_that_are_no_control_tokens_have_no_id() -> None:
    assert marks_of(CallFormat.HERMES, make_tokenizer()) == {}
