"""Bodies of messages requests: what they ask for, and what is refused by name."""

import json
from typing import Any

import pytest

from axon.domain.model.served_version import ServedVersion
from axon.errors import InvalidInput
from axon.gateway.anthropic.requests import CountRequest, MessagesRequest
from axon.gateway.directives import MESSAGES
from axon.gateway.http.body import parse
from axon.gateway.openai.formats import Form

ASK: dict[str, Any] = {"model": "small", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}
FORMAT = {"type": "json_schema", "schema": {"type": "object"}}
SERVED = ServedVersion(
    name="small", version="v1", text="t", max_model_len=99, created=0.0, temperature=0.4, top_p=0.8, top_k=7
)


def read(**fields: Any) -> MessagesRequest:
    ask = parse(MessagesRequest, json.dumps({**ASK, **fields}).encode(), MESSAGES.refused, MESSAGES.notes)
    ask.check()
    assert ask.form is None or ask.form.kind == "json"
    return ask


def test_sampling_is_what_the_client_asks_and_the_models_own_otherwise() -> None:
    left = read().sampling(SERVED)
    assert (left.max_tokens, left.temperature, left.top_p, left.top_k) == (9, 0.4, 0.8, 7)
    asked = read(temperature=0, top_p=0.5, top_k=3, stop_sequences=["END"], ignore_eos=True).sampling(SERVED)
    assert (asked.temperature, asked.top_p, asked.top_k, asked.stop, asked.ignore_eos) == (0, 0.5, 3, ("END",), True)


@pytest.mark.parametrize(
    "hint",
    [
        {"metadata": {"user_id": "me"}},
        {"service_tier": "auto"},
        {"service_tier": "standard_only"},
        {"thinking": {"type": "adaptive"}},
        {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        {"thinking": {"type": "disabled"}},
        {"output_config": {"effort": "high"}},
        {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}},
        {"mcp_servers": []},
    ],
    ids=lambda hint: json.dumps(hint),
)
def test_a_hint_is_taken(hint: dict[str, Any]) -> None:
    assert read(**hint).model == "small"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0.role"),
        ({"messages": [{"role": "user"}]}, "messages.0.content"),
        ({"messages": [*ASK["messages"], {"role": "assistant", "content": "Pre"}]}, "messages"),
        ({"temperature": 3}, "temperature"),
        ({"stop_sequences": [" "]}, "stop_sequences.0"),
        ({"stop_sequences": ["x"] * 17}, "stop_sequences"),
        ({"system": 7}, "system"),
        ({"system": [{"type": "image", "text": ""}]}, "system.0.type"),
        ({"thinking": {"type": "much"}}, "thinking.type"),
        ({"service_tier": "priority"}, "service_tier"),
        ({"mcp_servers": [{"url": "http://x"}]}, "mcp_servers"),
        ({"container": "c1"}, "container"),
        ({"output_config": {"format": {"type": "json_object"}}}, "output_config.format.type"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema"),
        ({"output_config": {"format": FORMAT}, "output_format": FORMAT}, "output_format"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"stop": ["END"]}, "stop"),
    ],
    ids=lambda each: json.dumps(each)[:50],
)
def test_what_cannot_be_done_is_refused_by_name(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(**fields)
    assert caught.value.param == param


def test_both_names_of_the_output_format_ask_for_the_same_form() -> None:
    asked, older = read(output_config={"format": FORMAT, "effort": "low"}).form, read(output_format=FORMAT).form
    assert asked == Form("json", FORMAT["schema"], "output_config.format.schema")
    assert older == Form("json", FORMAT["schema"], "output_format.schema")
    assert read(output_config={"effort": "low"}).form is None


def test_a_request_without_max_tokens_is_told_so() -> None:
    body = json.dumps({name: value for name, value in ASK.items() if name != "max_tokens"}).encode()
    with pytest.raises(InvalidInput, match="max_tokens"):
        parse(MessagesRequest, body, MESSAGES.refused)
    assert parse(CountRequest, body, MESSAGES.refused).model == "small"


def test_thinking_is_hidden_when_the_client_asks_for_it() -> None:
    assert read(thinking={"type": "adaptive", "display": "omitted"}).hides_thinking
    assert not read(thinking={"type": "adaptive"}).hides_thinking
    assert not read(thinking={"type": "adaptive", "display": "updates"}).hides_thinking  # as Claude Code asks
    assert not read().hides_thinking


@pytest.mark.parametrize(
    ("thinking", "told"),
    [
        ({"type": "enabled", "budget_tokens": 1024}, {"enable_thinking": True}),
        ({"type": "disabled"}, {"enable_thinking": False}),
        ({"type": "adaptive"}, {}),
        (None, {}),
    ],
)
def test_thinking_is_told_to_the_template(thinking: Any, told: dict[str, bool]) -> None:
    assert read(thinking=thinking).template_options == told
