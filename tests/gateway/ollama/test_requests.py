"""Ollama's bodies as chats and completions: options renamed, calls given ids, wrong fields named in Ollama's words."""

import json
from typing import Any

import pytest

from axon.errors import InvalidInput, Unsupported
from axon.gateway.directive import Treatment
from axon.gateway.directives import OLLAMA_OPTIONS
from axon.gateway.ollama.requests import OllamaChatRequest, OllamaGenerateRequest

USER = [{"role": "user", "content": "hi"}]


def chat(**fields: Any) -> Any:
    return OllamaChatRequest.model_validate({"model": "m:latest", "messages": USER, **fields}).chat()


def test_options_become_a_chats_fields() -> None:
    options = {"num_predict": 7, "repeat_penalty": 1.2, "temperature": 0, "top_k": 5, "stop": ["a"], "seed": 3}
    found = chat(options=options | {"num_ctx": 4096, "mirostat": 0, "unheard": 1, "top_p": None})
    assert (found.model, found.max_tokens, found.repetition_penalty, found.top_k) == ("m", 7, 1.2, 5)
    assert (found.stop, found.seed, found.top_p, found.stream) == (["a"], 3, None, True)
    assert chat(options={"num_predict": -1}).max_tokens is None


@pytest.mark.parametrize(
    ("last", "penalties"), [(64, (1.2, 0.5, 0.25)), (-1, (1.2, 0.5, 0.25)), (0, (None, None, None))]
)
def test_penalties_of_no_last_tokens_are_none(last: int, penalties: tuple[float | None, ...]) -> None:
    options = {"repeat_penalty": 1.2, "presence_penalty": 0.5, "frequency_penalty": 0.25, "repeat_last_n": last}
    found = chat(options=options)
    assert (found.repetition_penalty, found.presence_penalty, found.frequency_penalty) == penalties


def test_every_refused_option_is_refused_by_name_and_its_neutral_values_are_not() -> None:
    for name, directive in OLLAMA_OPTIONS.named(Treatment.REFUSED).items():
        for neutral in (None, *directive.neutral):
            chat(options={name: neutral})
        with pytest.raises(Unsupported) as refused:
            chat(options={name: 0.123})
        assert refused.value.param == f"options.{name}"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"options": {"num_predict": "many"}}, "options.num_predict"),
        ({"options": {"temperature": 9}}, "options.temperature"),
        ({"messages": [{"role": "wizard", "content": "hi"}]}, "messages.0.role"),
        ({"messages": [{**USER[0], "images": ["aGk="]}]}, "messages.0.images"),
        ({"format": "yaml"}, "format"),
        ({"think": "a lot"}, "think"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools.0.function.name"),
    ],
)
def test_a_wrong_field_is_named(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        chat(**fields)
    assert refused.value.param == param


def test_results_find_their_calls_by_name_or_order() -> None:
    calls = [{"function": {"name": name, "arguments": {"x": 1}}} for name in ("a", "b", "a")]
    results = [{"role": "tool", "content": "r", "tool_name": name} for name in ("b", "a", None)]
    found = chat(messages=[*USER, {"role": "assistant", "tool_calls": calls}, *results])
    assert [message.tool_call_id for message in found.messages[2:]] == ["call_1_1", "call_1_0", "call_1_2"]
    assert json.loads(found.messages[1].tool_calls[0].function.arguments) == {"x": 1}
    with pytest.raises(InvalidInput, match="preceding message"):
        chat(messages=[*USER, results[0]]).texts()


def test_thinking_is_switched_or_measured() -> None:
    assert chat(think=False).template_options == {"enable_thinking": False}
    assert chat(think="low").template_options == {"reasoning_effort": "low"}


def test_a_raw_prompt_is_a_completion() -> None:
    ask = OllamaGenerateRequest.model_validate({"model": "m", "prompt": "once", "raw": True, "stream": False})
    found = ask.completion(128)
    assert (found.prompt, found.max_tokens, found.stream, found.logprobs) == ("once", 128, False, None)
    with pytest.raises(Unsupported, match="think"):
        OllamaGenerateRequest.model_validate({"model": "m", "prompt": "a", "raw": True, "think": True}).completion(1)


def test_a_form_is_json_or_a_schema() -> None:
    assert chat(format="json").form.kind == "json_object"
    assert chat(format={"type": "object"}).form.value == {"type": "object"}
    assert chat(format="").form is None
