"""Tools in the bodies of the Responses API, which writes them flatter than chat does. Knows no HTTP."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from pydantic import Field

from axon.domain.tool import Tool, Toolbox
from axon.gateway.http.body import Many, Wire, at_most
from axon.gateway.openai.tools import (
    MAX_TOOLS,
    AllowedTool,
    AllowedTools,
    ChoiceWord,
    Chosen,
    FunctionBody,
    FunctionName,
    Offered,
    allowed,
    missing,
    require_function,
    toolbox_of,
)


class ResponseTool(Wire):
    """A tool of a response; only those of type ``function`` are supported."""

    type: str
    name: FunctionName | None = None
    description: str | None = None
    parameters: Annotated[dict[str, Any], *at_most(1024)] | None = None
    """JSON schema of the arguments."""
    strict: bool | None = None
    """Whether the arguments are constrained to the schema; false by default."""


class ResponseToolChoice(Wire):
    """A choice of one function, or of several allowed ones."""

    type: str
    name: str | None = None
    mode: Literal["auto", "required"] | None = None
    tools: Annotated[Many[AllowedTool], Field(min_length=1, max_length=MAX_TOOLS)] | None = None


def response_toolbox(
    tools: Sequence[ResponseTool] | None, choice: ChoiceWord | ResponseToolChoice | None, parallel: bool | None
) -> Toolbox:
    """Returns the tools of a response; raises if a tool or the choice is wrong or unsupported."""
    offered = []
    for index, tool in enumerate(tools or ()):
        require_function(tool.type, f"tools.{index}.type")
        if tool.name is None:
            raise missing(f"tools.{index}.name")
        body = FunctionBody(
            name=tool.name, description=tool.description, parameters=tool.parameters, strict=tool.strict
        )
        offered.append(Offered(body, f"tools.{index}"))
    return toolbox_of(offered, _choice(choice), parallel=parallel)


def tools_text(toolbox: Toolbox) -> str:
    """Returns the tools as the response object lists them, as JSON text; empty for none."""
    return msgspec.json.encode([_tool_body(tool) for tool in toolbox.tools]).decode() if toolbox.tools else ""


def choice_text(choice: ChoiceWord | ResponseToolChoice | None) -> str:
    """Returns the choice as the response object repeats it, as JSON text; empty for the default."""
    if choice is None:
        return ""
    body: Any = choice if isinstance(choice, str) else choice.model_dump(exclude_none=True)
    return msgspec.json.encode(body).decode()


def _tool_body(tool: Tool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description or None,
        "parameters": msgspec.Raw(tool.parameters.encode()) if tool.parameters else None,
        "strict": tool.strict,
    }


def _choice(choice: ChoiceWord | ResponseToolChoice | None) -> Chosen:
    if choice is None or isinstance(choice, str):
        return Chosen(choice)
    if choice.type == "allowed_tools":
        if choice.mode is None or choice.tools is None:
            raise missing("tool_choice.mode" if choice.mode is None else "tool_choice.tools")
        return allowed(AllowedTools(mode=choice.mode, tools=choice.tools), "tool_choice")
    require_function(choice.type, "tool_choice.type")
    if choice.name is None:
        raise missing("tool_choice.name")
    return Chosen("required", ((choice.name, "tool_choice.name"),))
