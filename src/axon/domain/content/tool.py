"""Tools that a client offers to the model, and how free the model is to call them. Knows no API and no format."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function that the model may ask the client to call."""

    name: str
    description: str = ""
    parameters: str = ""
    """JSON schema of the arguments, as JSON text; empty for a function without declared arguments."""
    strict: bool = False
    """Whether the arguments must follow the schema: a grammar then constrains them."""


class CallMode(StrEnum):
    """Whether the answer calls tools."""

    NONE = "none"
    AUTO = "auto"
    """The model decides."""
    REQUIRED = "required"
    """At least one call, and no other text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChoice:
    """Which calls an answer may or must have."""

    mode: CallMode = CallMode.AUTO
    names: tuple[str, ...] = ()
    """The functions that may be called; empty for all that are offered."""
    parallel: bool = True
    """Whether an answer may have more than one call."""

    def allows(self, tool: Tool) -> bool:
        """Whether this tool may be called."""
        return self.mode is not CallMode.NONE and (not self.names or tool.name in self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    """The tools of a request, and its choice among them."""

    tools: tuple[Tool, ...] = ()
    choice: ToolChoice = ToolChoice()

    @property
    def offered(self) -> tuple[Tool, ...]:
        """The tools that the model may call."""
        return tuple(tool for tool in self.tools if self.choice.allows(tool))
