"""The bodies of Anthropic's messages requests, and our values made from them. Knows no HTTP.

Unknown fields are ignored. A known field that this server does not support is refused by name, never dropped. Nothing
below the gateway knows these bodies.
"""

from typing import Annotated, Literal

from pydantic import Field

from axon.domain.content.tool import Toolbox
from axon.domain.model.served_version import ServedVersion
from axon.domain.sampling import Sampling
from axon.domain.tenants.tenant import Tier
from axon.errors import InvalidInput
from axon.gateway.anthropic.content import InputMessage, TextBlock
from axon.gateway.anthropic.tools import MAX_TOOLS, ToolBody, ToolChoiceBody, toolbox_of
from axon.gateway.http.body import Many, Wire
from axon.gateway.openai.formats import Form, Schema
from axon.gateway.openai.requests import Count, Probability, StopText, Temperature
from axon.text.template import Json

MAX_MESSAGES = 10_000
_MAX_STOPS = 16


class Thinking(Wire):
    """Whether the model reasons before its answer."""

    type: Literal["enabled", "disabled", "adaptive"]
    budget_tokens: Annotated[int, Field(ge=0, le=1 << 31)] | None = None
    """A hint, which this server does not enforce."""
    display: Literal["summarized", "omitted", "updates"] | None = None
    """``omitted`` returns blocks of thinking without their text; the others return it as the model writes it."""


class Metadata(Wire):
    """What the client says of its user: a hint."""

    user_id: str | None = None


class OutputFormat(Wire):
    """The form that the text of an answer must have."""

    type: Literal["json_schema"]
    schema_: Annotated[Schema, Field(alias="schema")]


class OutputConfig(Wire):
    """Options of the answer."""

    effort: str | None = None
    """A hint, which this server does not follow."""
    format: OutputFormat | None = None


class CountRequest(Wire):
    """The fields that make a message's prompt; the route that counts its tokens takes them alone."""

    model: str
    """The deployment's name, as ``GET /v1/models`` lists it."""
    messages: Annotated[Many[InputMessage], Field(min_length=1, max_length=MAX_MESSAGES)]
    """The conversation so far. Its last message must not be the assistant's."""
    system: str | Many[TextBlock] | None = None
    """What the model is told before the conversation."""
    tools: Annotated[Many[ToolBody], Field(max_length=MAX_TOOLS)] | None = None
    """Tools that the model may ask the client to use."""
    tool_choice: ToolChoiceBody | None = None
    """How free the model is to use tools; ``disable_parallel_tool_use`` allows one use in an answer."""
    thinking: Thinking | None = None
    """``enabled`` and ``disabled`` switch the model's reasoning on and off where its chat template has such a switch;
    ``adaptive`` leaves it to the model."""

    @property
    def template_options(self) -> dict[str, Json]:
        """The options that the chat template is rendered with."""
        if self.thinking is None or self.thinking.type == "adaptive":
            return {}
        return {"enable_thinking": self.thinking.type == "enabled"}

    @property
    def toolbox(self) -> Toolbox:
        """The tools and the choice among them."""
        return toolbox_of(self.tools, self.tool_choice)

    def check(self) -> None:
        """Raises ``InvalidInput`` if the conversation ends with the assistant."""
        if self.messages[-1].role == "assistant":
            raise InvalidInput(
                "This server does not support assistant message prefill. The conversation must end with a user "
                "message.",
                param="messages",
            )


class MessagesRequest(CountRequest):
    """Body of POST /v1/messages."""

    max_tokens: Count
    """Maximum number of tokens in the answer, those of its thinking included."""
    stop_sequences: Annotated[Many[StopText], Field(max_length=_MAX_STOPS)] | None = None
    """Strings that end the answer where they occur; ``stop_sequence`` of the answer names the one that did."""
    stream: bool | None = None
    """Sends the answer token by token as server-sent events."""
    temperature: Temperature | None = None
    """Sampling temperature. 0 always takes the likeliest token; without it, the model's own default holds."""
    top_p: Probability | None = None
    """Nucleus sampling: keeps the smallest set of likeliest tokens whose probabilities sum to this."""
    top_k: Annotated[int, Field(ge=-1, lt=1 << 31)] | None = None
    """Keeps this many of the likeliest tokens; 0 or -1 keeps all."""
    metadata: Metadata | None = None
    """Facts about the client's user: a hint that this server does not read."""
    service_tier: Literal["auto", "standard_only"] | None = None
    """A hint: the tier is the tenant's default in both cases."""
    output_config: OutputConfig | None = None
    """With ``format`` of ``{"type": "json_schema", "schema": …}``, the answer's text is JSON without white space that
    follows the schema. ``effort`` is a hint that this server does not follow."""
    output_format: OutputFormat | None = None
    """Older name of ``output_config.format``."""
    seed: Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)] | None = None
    """Ours, not Anthropic's: the same seed, prompt and settings give the same answer."""
    ignore_eos: bool | None = None
    """Ours, not Anthropic's: continues the answer past the model's end-of-sequence token."""

    def check(self) -> None:
        CountRequest.check(self)
        for index, text in enumerate(self.stop_sequences or ()):
            if not text.strip():
                param = f"stop_sequences.{index}"
                raise InvalidInput(f"{param}: each stop sequence must contain non-whitespace.", param=param)

    @property
    def form(self) -> Form | None:
        """The form that the answer's text must have; None for any text. Raises ``InvalidInput`` if two are given."""
        given = self.output_config.format if self.output_config else None
        if given is not None and self.output_format is not None:
            raise InvalidInput(
                "output_format: cannot be used together with output_config.format.",
                param="output_format",
                code="mutually_exclusive_parameters",
            )
        if given is not None:
            return Form("json", given.schema_, "output_config.format.schema")
        return Form("json", self.output_format.schema_, "output_format.schema") if self.output_format else None

    @property
    def tier(self) -> Tier:
        """The service tier that the client asks for."""
        return Tier.DEFAULT

    @property
    def hides_thinking(self) -> bool:
        """Whether blocks of thinking are returned without their text."""
        return self.thinking is not None and self.thinking.display == "omitted"

    def sampling(self, defaults: ServedVersion) -> Sampling:
        """Returns the sampling parameters; those that the request leaves out are the deployment's defaults."""
        left_alone = self.temperature is None
        return Sampling(
            max_tokens=self.max_tokens,
            temperature=defaults.temperature if self.temperature is None else self.temperature,
            top_k=max(0, defaults.top_k if self.top_k is None else self.top_k),
            top_p=defaults.top_p if self.top_p is None else self.top_p,
            repetition_penalty=defaults.repetition_penalty if left_alone else 1.0,
            stop=tuple(self.stop_sequences or ()),
            ignore_eos=bool(self.ignore_eos),
        )
