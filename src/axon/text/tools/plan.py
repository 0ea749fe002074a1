"""How a request's tools reach the model, and how its calls are found again. Pure functions; knows no API."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

from axon.domain.content.tool import Tool, Toolbox
from axon.domain.sampling import Sampling
from axon.text.grammar import Grammar
from axon.text.tools.formats import CallFormat
from axon.text.tools.prompt import PLAIN, Dialect


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPlan:
    """What the prompt and the job of a request need to know of its tools."""

    tools: tuple[Tool, ...] = ()
    """The tools that are described to the model."""
    dialect: Dialect = PLAIN
    max_calls: int = 0
    """Number of calls with which the answer ends; 0 for any number."""
    text_parameters: tuple[str, ...] = ()
    """Parameters that are declared as text, as ``function/parameter``, where the format does not tell them apart."""

    grammar: Grammar | None = None
    """The grammar that the answer follows; None if neither its calls nor its text are constrained."""
    formed: bool = False
    """Whether the answer is either calls alone or text of the form that the request asks for."""

    def constrain(self, sampling: Sampling, reasoning: str) -> Sampling:
        """The sampling parameters with the grammar, which begins after the reasoning of an answer of this mode."""
        return replace(sampling, grammar=self.grammar.after(reasoning)) if self.grammar else sampling

    @property
    def call_format(self) -> str:
        """The format by which the worker parses calls; empty if the request offers no tools."""
        return self.dialect.format.value if self.tools else ""


NO_CALLS = CallPlan()
"""The plan of a request without tools."""


def plan_of(toolbox: Toolbox, dialect: Dialect) -> CallPlan:
    """The plan of a request with these tools, for a model of this dialect."""
    offered = toolbox.offered
    needs_types = dialect.format is CallFormat.QWEN3_CODER
    return CallPlan(
        tools=offered,
        dialect=dialect,
        max_calls=0 if toolbox.choice.parallel else 1,
        text_parameters=tuple(_text_parameters(offered)) if needs_types else (),
    )


def _text_parameters(tools: tuple[Tool, ...]) -> Iterator[str]:
    for tool in tools:
        schema = json.loads(tool.parameters or "{}")
        properties = schema.get("properties")
        for name, each in properties.items() if isinstance(properties, dict) else ():
            if isinstance(each, dict) and each.get("type") == "string":
                yield f"{tool.name}/{name}"
