"""Tools in the bodies of Anthropic's messages, and our values made from them. Knows no HTTP and no model."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from axon.domain.content.tool import CallMode, Toolbox, ToolChoice
from axon.errors import InvalidInput, Unsupported
from axon.gateway.http.body import Wire, at_most
from axon.gateway.openai.tools import Offered, tools_of

MAX_TOOLS = 1024
_MAX_NAME_CHARS = 64
"""An error repeats at most this many characters of a name that the client chose."""


class ToolBody(Wire):
    """A tool that the model may ask the client to use; those that run on Anthropic's servers are refused by name."""

    type: str | None = None
    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,128}$")]
    description: str | None = None
    input_schema: Annotated[dict[str, Any], *at_most(1024)] | None = None
    """JSON schema of the input."""
    strict: bool | None = None
    """Whether the input is constrained to the schema."""


class ToolChoiceBody(Wire):
    """How free the model is to use tools: ``auto``, ``any`` (at least one), ``tool`` (this one) or ``none``."""

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


_MODES = {"auto": CallMode.AUTO, "any": CallMode.REQUIRED, "tool": CallMode.REQUIRED, "none": CallMode.NONE}


def toolbox_of(given: Sequence[ToolBody] | None, choice: ToolChoiceBody | None) -> Toolbox:
    """Returns the tools and the choice among them; raises ``InvalidInput`` if they contradict each other."""
    tools = tuple(tools_of(_offered(given or ())))
    if choice is None or not tools:
        if choice is not None and choice.type in ("any", "tool"):
            raise InvalidInput("tool_choice may only be specified while providing tools.", param="tool_choice")
        return Toolbox(tools=tools, choice=ToolChoice(mode=CallMode.AUTO if tools else CallMode.NONE))
    names: tuple[str, ...] = ()
    if choice.type == "tool":
        if choice.name not in {tool.name for tool in tools}:
            name = (choice.name or "")[:_MAX_NAME_CHARS]
            raise InvalidInput(f"Tool '{name}' not found in provided tools", param="tool_choice.name")
        names = (choice.name or "",)
    parallel = not choice.disable_parallel_tool_use
    return Toolbox(tools=tools, choice=ToolChoice(mode=_MODES[choice.type], names=names, parallel=parallel))


def _offered(given: Sequence[ToolBody]) -> Iterator[Offered]:
    for index, tool in enumerate(given):
        path = f"tools.{index}"
        if tool.type not in (None, "custom"):
            raise Unsupported(
                f"{path}.type: tools of type '{(tool.type or '')[:_MAX_NAME_CHARS]}' are not supported; only your own "
                "('custom') are.",
                param=f"{path}.type",
            )
        if tool.input_schema is None:
            raise InvalidInput(f"{path}.input_schema: Field required", param=f"{path}.input_schema")
        yield Offered(tool.name, path, tool.description, tool.input_schema, tool.strict, "input_schema")
