"""Tools in the bodies of OpenAI's APIs, and our values made from them. Knows no HTTP and no model."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from pydantic import Field

from axon.domain.content.tool import CallMode, Tool, Toolbox, ToolChoice
from axon.errors import InvalidInput, Unsupported
from axon.gateway.http.body import Many, Wire, at_most

MAX_TOOLS = 128
MAX_TOOL_BYTES = 1 << 19
"""Bytes that the descriptions and schemas of a request's tools may have together."""
MAX_DEPTH = 64
"""Levels of lists and objects that a schema, or the arguments of a call, may have."""
NAME_PATTERN = r"^[a-zA-Z0-9_-]{1,64}$"
FunctionName = Annotated[str, Field(pattern=NAME_PATTERN)]


class FunctionBody(Wire):
    """A function that the model may call."""

    name: FunctionName
    description: str | None = None
    parameters: Annotated[dict[str, Any], *at_most(1024)] | None = None
    """JSON schema of the arguments."""
    strict: bool | None = None
    """Whether the arguments are constrained to the schema."""


class ChatTool(Wire):
    """A tool of a chat; only those of type ``function`` are supported."""

    type: str
    function: FunctionBody | None = None


class FunctionNameBody(Wire):
    name: str


class AllowedTool(Wire):
    type: str
    function: FunctionNameBody | None = None
    name: str | None = None


class AllowedTools(Wire):
    mode: Literal["auto", "required"]
    tools: Annotated[Many[AllowedTool], Field(min_length=1, max_length=MAX_TOOLS)]


class ChatToolChoice(Wire):
    """A choice of one function, or of several allowed ones."""

    type: str
    function: FunctionNameBody | None = None
    allowed_tools: AllowedTools | None = None


ChoiceWord = Literal["none", "auto", "required"]


class Offered(NamedTuple):
    """A function as a request of any API has it, with the path of its field, which errors name."""

    name: str
    """The name by which the model knows it."""
    path: str
    description: str | None = None
    schema: Mapping[str, Any] | None = None
    """JSON schema of the arguments."""
    strict: bool | None = None
    schema_field: str = "parameters"
    """What the API calls the schema."""


class Chosen(NamedTuple):
    """A choice as a request has it: its mode and the names of the functions, each with the path of its field."""

    mode: str | None = None
    names: tuple[tuple[str, str], ...] = ()
    once: bool = False
    """Whether the answer has exactly one call, as it has of a function that is chosen by name."""


def full_name(namespace: str, name: str) -> str:
    """Returns the name by which the model knows a function of a namespace; no name of a client's own has a dot."""
    return f"{namespace}.{name}" if namespace else name


def split_name(name: str) -> tuple[str, str]:
    """Returns the namespace, empty for none, and the name within it of a function that the model has called."""
    namespace, _, bare = name.rpartition(".")
    return namespace, bare


def toolbox_of(offered: Sequence[Offered], chosen: Chosen, *, parallel: bool | None) -> Toolbox:
    """Returns the tools and the choice; raises ``InvalidInput`` if they contradict each other.

    Without a mode the model decides, where there are tools.
    """
    if len(offered) > MAX_TOOLS:
        raise InvalidInput(f"At most {MAX_TOOLS} tools are allowed.", param="tools", code="array_above_max_length")
    tools = tuple(tools_of(offered))
    mode = CallMode(chosen.mode) if chosen.mode else (CallMode.AUTO if tools else CallMode.NONE)
    if mode is CallMode.REQUIRED and not tools:
        raise InvalidInput("'tool_choice' is only allowed when 'tools' are specified.", param="tool_choice")
    known = {tool.name for tool in tools}
    for name, path in chosen.names:
        if name not in known:
            raise InvalidInput(f"Tool choice '{name[:64]}' not found in 'tools'.", param=path)
    choice = ToolChoice(
        mode=mode if tools else CallMode.NONE,
        names=tuple(dict.fromkeys(name for name, _ in chosen.names)),
        parallel=parallel is not False and not chosen.once,
    )
    return Toolbox(tools=tools, choice=choice)


def chat_toolbox(
    tools: Sequence[ChatTool] | None, choice: ChoiceWord | ChatToolChoice | None, parallel: bool | None
) -> Toolbox:
    """Returns the tools of a chat."""
    offered = []
    for index, tool in enumerate(tools or ()):
        require_function(tool.type, f"tools.{index}.type")
        if tool.function is None:
            raise missing(f"tools.{index}.function")
        body, path = tool.function, f"tools.{index}.function"
        offered.append(Offered(body.name, path, body.description, body.parameters, body.strict))
    return toolbox_of(offered, _chat_choice(choice), parallel=parallel)


def _chat_choice(choice: ChoiceWord | ChatToolChoice | None) -> Chosen:
    if choice is None or isinstance(choice, str):
        return Chosen(choice)
    if choice.type == "allowed_tools":
        if choice.allowed_tools is None:
            raise missing("tool_choice.allowed_tools")
        return allowed(choice.allowed_tools, "tool_choice.allowed_tools")
    require_function(choice.type, "tool_choice.type")
    if choice.function is None:
        raise missing("tool_choice.function")
    return Chosen("required", ((choice.function.name, "tool_choice.function.name"),), once=True)


def allowed(choice: AllowedTools, path: str) -> Chosen:
    """Returns the choice among several allowed functions; ``path`` names it in errors."""
    names = []
    for index, tool in enumerate(choice.tools):
        field_path = f"{path}.tools.{index}"
        require_function(tool.type, f"{field_path}.type")
        if (name := tool.function.name if tool.function else tool.name) is None:
            raise missing(f"{field_path}.name")
        names.append((name, field_path))
    return Chosen(choice.mode, tuple(names))


def require_function(kind: str, path: str) -> None:
    """Raises ``Unsupported`` for a tool of another type than ``function``."""
    if kind != "function":
        raise Unsupported(f"Tools of type '{kind[:64]}' are not supported; only 'function' is.", param=path)


def tools_of(offered: Iterable[Offered]) -> Iterator[Tool]:
    """Yields a request's tools; raises ``InvalidInput`` if two have one name, or a schema is wrong or too large."""
    names: set[str] = set()
    num_bytes = 0
    for each in offered:
        path, schema_path = f"{each.path}.name", f"{each.path}.{each.schema_field}"
        if each.name in names:
            raise InvalidInput(f"'{path}': two tools are called '{each.name}'; names must be unique.", param=path)
        names.add(each.name)
        check_object(each.schema, schema_path)
        parameters = "" if each.schema is None else json_text(each.schema, schema_path)
        description = each.description or ""
        tool = Tool(name=each.name, description=description, parameters=parameters, strict=bool(each.strict))
        num_bytes += len(tool.description.encode()) + len(parameters.encode())
        if num_bytes > MAX_TOOL_BYTES:
            raise InvalidInput(
                f"The descriptions and schemas of the tools have more than {MAX_TOOL_BYTES} bytes.", param="tools"
            )
        yield tool


def check_object(schema: Mapping[str, Any] | None, path: str) -> None:
    """Raises ``InvalidInput`` if a tool's schema is none of an object: no call can carry anything else."""
    if schema is not None and schema.get("type", "object") != "object":
        raise InvalidInput(f"'{path}' must be a schema of the type 'object'.", param=path, code="invalid_schema")


def json_text(value: Mapping[str, Any], path: str) -> str:
    """Returns a decoded JSON object as text; raises ``InvalidInput`` if it is nested too deeply."""
    check_depth(value, path)
    return msgspec.json.encode(value).decode()


def check_depth(value: Any, path: str) -> None:
    """Raises ``InvalidInput`` if a decoded JSON value is nested too deeply for whoever reads it next."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise InvalidInput(f"'{path}' is nested more than {MAX_DEPTH} levels deep.", param=path)


def check_arguments(arguments: str, path: str) -> None:
    """Raises ``InvalidInput`` unless a call's arguments are the text of a JSON object; empty ones stand for none."""
    try:
        value = msgspec.json.decode(arguments) if arguments.strip() else {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidInput(f"'{path}' must be the text of a JSON object.", param=path, code="invalid_value")
    check_depth(value, path)


def missing(path: str) -> InvalidInput:
    """Returns the error for a field that is not there."""
    return InvalidInput(f"'{path}' is missing.", param=path, code="missing_required_parameter")
