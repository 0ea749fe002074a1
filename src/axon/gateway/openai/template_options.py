"""The options that a request gives the model's chat template: its own, and how much to reason. Knows no template."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from axon.errors import InvalidInput
from axon.gateway.http.body import at_most
from axon.text.template import RESERVED

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
Option = Annotated[str, Field(max_length=1024)] | int | float | bool | None
TemplateOptions = Annotated[dict[Annotated[str, Field(max_length=64)], Option], *at_most(16)]


def template_options(given: Mapping[str, Option] | None, effort: str | None) -> dict[str, Option]:
    """The options with which the chat template is rendered; raises ``InvalidInput`` for a name that the server sets.

    ``reasoning_effort`` is told to the template, which may read it or not; ``none`` also switches off the thinking of
    templates that have such a switch, as Qwen3's has.
    """
    for name in given or {}:
        if name in RESERVED:
            param = f"chat_template_kwargs.{name}"
            raise InvalidInput(f"'{param}' is set by the server and cannot be given.", param=param)
    told: dict[str, Option] = {} if effort is None else {"reasoning_effort": effort}
    if effort == "none":
        told["enable_thinking"] = False
    return told | dict(given or {})
