"""Whether an answer has the form that its request asked for: by validators that are not the server's own. Pure."""

import json
import re
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator

from tests.faults.history import Ask, Told
from tests.faults.transcript import calls_of, said

CUT_OFF = ("length", "max_tokens", "incomplete")
"""How an answer ends that is the beginning of one."""


def wrong_form(ask: Ask, told: Told) -> str:
    """What is wrong with the form of a turn's answer; empty if nothing is, or no form was asked for."""
    for choice in range(ask.num_choices):
        is_cut_off = told.ends.get(choice) in CUT_OFF
        if problem := _wrong_choice(ask.body, told.text(choice), is_cut_off=is_cut_off):
            return f"choice {choice}: {problem}"
    return ""


def _wrong_choice(body: Mapping[str, Any], text: str, *, is_cut_off: bool) -> str:
    if "tools" in body:
        return _wrong_calls(body, text, is_cut_off=is_cut_off)
    if is_cut_off:
        return ""
    if "structured_outputs" in body:
        pattern = body["structured_outputs"]["regex"]
        return "" if re.fullmatch(pattern, text) else f"{text!r} does not match {pattern}"
    if "response_format" in body:
        return _wrong_json(body["response_format"]["json_schema"]["schema"], text)
    return _wrong_json(body["text"]["format"]["schema"], text) if "text" in body else ""


def _wrong_calls(body: Mapping[str, Any], text: str, *, is_cut_off: bool) -> str:
    schemas = dict(map(_offered, body["tools"]))
    calls = calls_of(text)
    if said(text).strip() or [call.number for call in calls] != list(range(len(calls))):
        return f"{text!r} is not calls alone, from 0 on"
    if not calls and not is_cut_off:
        return "no call"
    for call in calls[:-1] if is_cut_off else calls:
        if call.name not in schemas:
            return f"nobody offered {call.name}"
        if problem := _wrong_json(schemas[call.name], call.arguments):
            return problem
    return ""


def _offered(tool: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The name and the schema of a tool, as chat, responses or messages write it."""
    function = tool.get("function", tool)
    return function["name"], function.get("parameters") or function["input_schema"]


def _wrong_json(schema: Mapping[str, Any], text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError as error:
        return f"{text!r} is no JSON: {error}"
    problems = [error.message for error in Draft202012Validator(schema).iter_errors(value)]
    return "; ".join(problems)
