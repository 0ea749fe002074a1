"""Requests for answers of a form, at all routes, by a seed: schemas, regular expressions and tool calls."""

import os
import random
from typing import Any

from tests.faults.history import Ask
from tests.faults.model import CHARACTERS, NAME
from tests.vllm_environment import VARIABLE

_LETTERS = CHARACTERS[:95]
_NUM_PROMPT_CHARS = (20, 80)
_LONG_PROMPT_CHARS = 300
_MAX_TOKENS = 320
"""More than any of these answers needs, but for one that calls on and on."""
_SEVERAL_TOKENS = 150
"""More than one call needs."""
RECORD: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 12, "maxLength": 30},
        "size": {"enum": ["small", "large"]},
        "numbers": {
            "type": "array",
            "items": {"type": "integer", "minimum": 0, "maximum": 9999},
            "minItems": 3,
            "maxItems": 6,
        },
        "at": {
            "type": "object",
            "properties": {"street": {"type": "string", "pattern": "^[a-z]{8,16}$"}, "open": {"type": "boolean"}},
            "required": ["street", "open"],
            "additionalProperties": False,
        },
        "note": {"type": "string", "maxLength": 12},
    },
    "required": ["name", "size", "numbers", "at"],
    "additionalProperties": False,
}
_WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 10, "maxLength": 24},
        "days": {"type": "integer", "minimum": 1, "maximum": 99},
        "unit": {"enum": ["celsius", "fahrenheit"]},
    },
    "required": ["city", "days", "unit"],
    "additionalProperties": False,
}
_NOTE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "words": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]{4,9}$"}, "minItems": 3, "maxItems": 5}
    },
    "required": ["words"],
    "additionalProperties": False,
}
_TOOLS = {"get_weather": _WEATHER, "take_note": _NOTE}
_REGEX = r"[A-Z][a-z]{10,20}( [a-z]{3,9}){4,7}\."
_FORMS = (
    "chat-schema",
    "chat-parallel",
    "completions-regex-pair",
    "responses-schema",
    "messages-named",
    "chat-schema-pair",
    "responses-parallel",
    "chat-named-pair",
    "messages-parallel",
    "completions-schema",
)
_ROUTES = {"chat": "/v1/chat/completions"}


def make_structured_asks(seed: int, num_asks: int) -> list[Ask]:
    """All forms in turn, with seeds or, but for pairs, every other time greedy; every fifth prompt is a long one. Of
    vLLM greedy ones alone: what it draws after a failover is not what it would have drawn."""
    rng = random.Random(f"structured asks/{seed}")
    return [_ask(number, rng) for number in range(num_asks)]


def _ask(number: int, rng: random.Random) -> Ask:
    form = _FORMS[number % len(_FORMS)]
    route, kind, *pair = form.split("-")
    num_chars = _LONG_PROMPT_CHARS if number % 5 == 4 else rng.randint(*_NUM_PROMPT_CHARS)
    body = {"model": NAME, **_prompt(route, "".join(rng.choices(_LETTERS, k=num_chars))), **_form(route, kind)}
    seed = rng.randrange(1 << 31)
    is_greedy = os.environ.get(VARIABLE) or ((number + number // len(_FORMS)) % 2 and not pair)
    hot = {"temperature": 2 if kind == "parallel" else 1, "seed": seed}  # hot enough to call more than once at times
    body |= {"temperature": 0} if is_greedy else hot
    body |= {"n": 2} if pair else {}
    return Ask(name=f"{form}-{number}", route=_ROUTES.get(route, f"/v1/{route}"), structured=True, body=body)


def _prompt(route: str, text: str) -> dict[str, Any]:
    match route:
        case "completions":
            return {"prompt": text, "max_tokens": _MAX_TOKENS}
        case "responses":
            return {"input": text, "max_output_tokens": _MAX_TOKENS}
        case _:
            return {"messages": [{"role": "user", "content": text}], "max_tokens": _MAX_TOKENS}


def _form(route: str, kind: str) -> dict[str, Any]:
    match kind:
        case "regex":
            return {"structured_outputs": {"regex": _REGEX}}
        case "schema" if route == "responses":
            return {"text": {"format": {"type": "json_schema", "name": "record", "schema": RECORD}}}
        case "schema":
            return {"response_format": {"type": "json_schema", "json_schema": {"name": "record", "schema": RECORD}}}
    tools = [_tool(route, name) for name in _TOOLS]
    if route == "messages":
        named = {"type": "tool", "name": "get_weather", "disable_parallel_tool_use": True}
        return {"tools": tools, "tool_choice": {"type": "any"} if kind == "parallel" else named}
    if kind == "parallel":
        several = {"min_tokens": _SEVERAL_TOKENS} if route == "chat" else {}
        return {"tools": tools, "tool_choice": "required", **several}
    one = {"type": "function", "function": {"name": "get_weather"}}
    return {"tools": tools, "tool_choice": one, "parallel_tool_calls": False}


def _tool(route: str, name: str) -> dict[str, Any]:
    match route:
        case "messages":
            return {"name": name, "input_schema": _TOOLS[name]}
        case "responses":
            return {"type": "function", "name": name, "parameters": _TOOLS[name]}
        case _:
            return {"type": "function", "function": {"name": name, "parameters": _TOOLS[name]}}
