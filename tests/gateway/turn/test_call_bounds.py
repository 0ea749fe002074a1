"""The grammar of a request's tools costs its sender an error before it costs anybody else time."""

import json
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from axon.domain.content.tool import CallMode, Tool, Toolbox, ToolChoice
from axon.errors import InvalidInput
from axon.gateway.anthropic.tools import ToolBody
from axon.gateway.anthropic.tools import toolbox_of as messages_toolbox
from axon.gateway.openai.formats import ResponseFormat, Structured
from axon.gateway.openai.tools import MAX_TOOL_BYTES, ChatTool, FunctionBody, chat_toolbox
from axon.gateway.turn.calling import planned
from axon.sessions.grammars import Grammars, TenantGrammars
from axon.text.tokenizer import ByteTokenizer
from axon.text.tools.prompt import PLAIN
from tests.sessions.in_process import InProcess

TARGET: Any = SimpleNamespace(dialect=PLAIN, prompts=SimpleNamespace(tokenizer=ByteTokenizer()))
REQUIRED = ToolChoice(mode=CallMode.REQUIRED)


def tool(name: str, *, strict: bool = False, **schema: Any) -> Tool:
    return Tool(name=name, parameters=json.dumps({"type": "object", **schema}), strict=strict)


@pytest.fixture
async def grammars() -> AsyncIterator[TenantGrammars]:
    found = Grammars(InProcess())
    yield found.of("a")
    await found.aclose()


async def grammar_text(grammars: TenantGrammars, *tools: Tool) -> str:
    plan = await planned(grammars, Toolbox(tools=tools, choice=REQUIRED), TARGET)
    assert plan.grammar is not None
    return plan.grammar.text


async def test_schemas_that_take_too_long_together_are_refused(
    grammars: TenantGrammars, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("axon.sessions.grammars._MAX_TOGETHER_S", -1.0)
    with pytest.raises(InvalidInput, match="too long"):
        await grammar_text(grammars, *(tool(f"f{number}", title=f"{number}") for number in range(9)))


async def test_a_tools_schema_has_the_bounds_of_any_other(grammars: TenantGrammars) -> None:
    large: dict[str, Any] = {"properties": {"a": {"const": "x" * 100_000}}}
    with pytest.raises(InvalidInput, match="may have 65536"):
        await grammar_text(grammars, tool("f", strict=True, **large))
    assert len(await grammar_text(grammars, tool("f", **large))) < 1000  # without ``strict`` any object will do


@pytest.mark.parametrize("kind", ["array", "string", None, ["object", "null"]])
def test_a_tool_takes_an_object_and_nothing_else(kind: Any) -> None:
    with pytest.raises(InvalidInput) as chat:
        chat_toolbox(
            [ChatTool(type="function", function=FunctionBody(name="f", parameters={"type": kind}))], None, None
        )
    assert chat.value.param == "tools.0.function.parameters"
    with pytest.raises(InvalidInput) as message:
        messages_toolbox([ToolBody(name="f", input_schema={"type": kind})], None)
    assert message.value.param == "tools.0.input_schema"


def test_the_schema_beside_json_object_is_not_dropped() -> None:
    asked = Structured(response_format=ResponseFormat.model_validate({"type": "json_object", "schema": {"a": 1}}))
    assert asked.form is not None
    assert (asked.form.kind, asked.form.param) == ("json", "response_format.schema")


def test_the_size_of_tools_is_counted_in_bytes() -> None:
    said = "é" * (MAX_TOOL_BYTES // 2)
    for more in ("", "é"):
        tools = [ChatTool(type="function", function=FunctionBody(name="f", description=said + more))]
        if more:
            with pytest.raises(InvalidInput, match="more than"):
                chat_toolbox(tools, None, None)
        else:
            assert chat_toolbox(tools, None, None).tools
