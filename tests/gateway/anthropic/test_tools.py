"""Tools in a messages request: what they mean, and what is refused by name."""

import json
from typing import Any

import pytest

from axon.domain.content.tool import CallMode, Tool, Toolbox
from axon.errors import InvalidInput, Unsupported
from axon.gateway.anthropic.tools import ToolBody, ToolChoiceBody, toolbox_of

GET: dict[str, Any] = {"name": "get", "description": "Gets.", "input_schema": {"type": "object"}}


def read(*tools: dict[str, Any], choice: dict[str, Any] | None = None) -> Toolbox:
    chosen = None if choice is None else ToolChoiceBody.model_validate(choice)
    return toolbox_of([ToolBody.model_validate(tool) for tool in tools], chosen)


def test_a_tool_is_our_tool() -> None:
    box = read({**GET, "type": "custom", "strict": True, "cache_control": {"type": "ephemeral"}})
    assert box.tools == (Tool(name="get", description="Gets.", parameters='{"type":"object"}', strict=True),)
    assert box.choice.mode is CallMode.AUTO


@pytest.mark.parametrize(
    ("choice", "mode", "names", "parallel"),
    [
        ({"type": "auto"}, CallMode.AUTO, (), True),
        ({"type": "auto", "disable_parallel_tool_use": True}, CallMode.AUTO, (), False),
        ({"type": "any"}, CallMode.REQUIRED, (), True),
        ({"type": "tool", "name": "get"}, CallMode.REQUIRED, ("get",), True),
        ({"type": "none"}, CallMode.NONE, (), True),
    ],
)
def test_a_choice_is_our_choice(choice: dict[str, Any], mode: CallMode, names: tuple[str, ...], parallel: bool) -> None:
    found = read(GET, choice=choice).choice
    assert (found.mode, found.names, found.parallel) == (mode, names, parallel)


@pytest.mark.parametrize("choice", [None, {"type": "auto"}, {"type": "none"}])
def test_without_tools_nothing_is_called(choice: dict[str, Any] | None) -> None:
    assert read(choice=choice).choice.mode is CallMode.NONE


@pytest.mark.parametrize(
    "kind", ["web_search_20250305", "code_execution_20250825", "bash_20250124", "text_editor_20250728", "mcp_toolset"]
)
def test_a_tool_that_is_not_the_clients_own_is_refused_by_name(kind: str) -> None:
    with pytest.raises(Unsupported, match=f"tools.0.type: tools of type '{kind}'"):
        read({"type": kind, "name": "x"})


@pytest.mark.parametrize(
    ("tools", "choice", "words"),
    [
        ([GET, GET], None, "must be unique"),
        ([{"name": "get"}], None, "input_schema: Field required"),
        ([GET], {"type": "tool", "name": "put"}, "Tool 'put' not found"),
        ([GET], {"type": "tool"}, "Tool '' not found"),
        ([], {"type": "any"}, "while providing tools"),
        ([{**GET, "description": "x" * (1 << 20)}], None, "bytes"),
        ([{**GET, "input_schema": {"a": json.loads("[" * 100 + "]" * 100)}}], None, "nested"),
    ],
    ids=lambda each: str(each)[:30],
)
def test_contradictions_are_refused(tools: list[dict[str, Any]], choice: dict[str, Any] | None, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        read(*tools, choice=choice)
