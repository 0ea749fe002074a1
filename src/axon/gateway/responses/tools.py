"""Tools in the bodies of the Responses API, which writes them flatter than chat does. Knows no HTTP."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from pydantic import Field

from axon.domain.content.tool import Toolbox
from axon.gateway.http.body import Many, Wire, at_most
from axon.gateway.openai.tools import (
    MAX_TOOLS,
    AllowedTool,
    AllowedTools,
    ChoiceWord,
    Chosen,
    FunctionName,
    Offered,
    allowed,
    full_name,
    missing,
    require_function,
    toolbox_of,
)


class GroupedTool(Wire):
    """A tool of a namespace; only those of type ``function`` are supported."""

    type: str
    name: FunctionName | None = None
    description: str | None = None
    parameters: Annotated[dict[str, Any], *at_most(1024)] | None = None
    """JSON schema of the arguments."""
    strict: bool | None = None
    """Whether the arguments are constrained to the schema; false by default."""


class ResponseTool(GroupedTool):
    """A tool of a response: a ``function``, or a ``namespace`` with functions in it."""

    tools: Annotated[Many[GroupedTool], Field(max_length=MAX_TOOLS)] | None = None
    """The functions of a namespace."""


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
    offered = [each for index, tool in enumerate(tools or ()) for each in _offered(tool, f"tools.{index}")]
    return toolbox_of(offered, _choice(choice), parallel=parallel)


def _offered(tool: ResponseTool, path: str) -> list[Offered]:
    """Returns the function that a tool is, or those that a namespace has."""
    if tool.type != "namespace":
        return [_function(tool, path)]
    if tool.name is None or tool.tools is None:
        raise missing(f"{path}.name" if tool.name is None else f"{path}.tools")
    found = [_function(each, f"{path}.tools.{index}", tool.name) for index, each in enumerate(tool.tools)]
    if found and tool.description:  # what the group is for, the model reads with the first of its functions
        said = f"{tool.description}\n{found[0].description or ''}".strip()
        found[0] = found[0]._replace(description=said)
    return found


def _function(tool: GroupedTool, path: str, namespace: str = "") -> Offered:
    require_function(tool.type, f"{path}.type")
    if tool.name is None:
        raise missing(f"{path}.name")
    return Offered(full_name(namespace, tool.name), path, tool.description, tool.parameters, tool.strict)


def tools_text(tools: Sequence[ResponseTool] | None) -> str:
    """Returns the tools as the response object lists them, as JSON text; empty for none."""
    return msgspec.json.encode([_tool_body(tool) for tool in tools]).decode() if tools else ""


def choice_text(choice: ChoiceWord | ResponseToolChoice | None) -> str:
    """Returns the choice as the response object repeats it, as JSON text; empty for the default."""
    if choice is None:
        return ""
    body: Any = choice if isinstance(choice, str) else choice.model_dump(exclude_none=True)
    return msgspec.json.encode(body).decode()


def _tool_body(tool: GroupedTool) -> dict[str, Any]:
    head = {"type": tool.type, "name": tool.name, "description": tool.description or None}
    if isinstance(tool, ResponseTool) and tool.tools is not None:
        return {**head, "tools": [_tool_body(each) for each in tool.tools]}
    return {**head, "parameters": tool.parameters, "strict": bool(tool.strict)}


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
    return Chosen("required", ((choice.name, "tool_choice.name"),), once=True)
