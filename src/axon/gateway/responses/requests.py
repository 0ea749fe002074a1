"""The request bodies of the Responses and Conversations APIs, and our values made from them. Knows no HTTP.

Nothing below the gateway knows these bodies.
"""

from typing import Annotated, Literal

from pydantic import Field

from axon.domain.content.tool import Toolbox
from axon.domain.model.served_version import ServedVersion
from axon.domain.sampling import Sampling
from axon.domain.tenants.tenant import Tier
from axon.errors import InvalidInput
from axon.gateway.http.body import Many, Wire, at_most
from axon.gateway.openai.formats import Form, TextFormat, form_of_text
from axon.gateway.openai.requests import Count, NumTop, Probability, Temperature, TierName, tier_asked
from axon.gateway.openai.template_options import Effort, Option, TemplateOptions, template_options
from axon.gateway.openai.tools import MAX_TOOLS, ChoiceWord
from axon.gateway.responses.items import MAX_ITEMS, Input, InputItem
from axon.gateway.responses.tools import ResponseTool, ResponseToolChoice, response_toolbox

LOGPROBS = "message.output_text.logprobs"
"""The entry of ``include`` that asks for log probabilities."""
Included = Literal[
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "message.input_image.image_url",
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
]
Metadata = Annotated[dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]], *at_most(16)]
Name = Annotated[str, Field(max_length=512)]


class ConversationName(Wire):
    """A conversation, named by its id; without one, a new one with this metadata."""

    id: Name | None = None
    metadata: Metadata | None = None


class TextOptions(Wire):
    """Options of the answer's text."""

    format: TextFormat | None = None
    verbosity: str | None = None
    """A hint."""


class Reasoning(Wire):
    """How the model should reason."""

    effort: Effort | None = None
    summary: str | None = None
    """A hint: the reasoning itself is returned, where the model writes any."""


class Context(Wire):
    """The fields that make a response's prompt; the route that counts input tokens takes them alone."""

    model: str
    input: Input | None = None
    instructions: str | None = None
    previous_response_id: Name | None = None
    conversation: Name | ConversationName | None = None
    """The conversation that the response belongs to. An object with ``metadata`` and without ``id`` begins a new one;
    the answer has its id."""
    truncation: Literal["auto", "disabled"] | None = None
    tools: Annotated[Many[ResponseTool], Field(max_length=MAX_TOOLS)] | None = None
    """Functions that the model may call."""
    tool_choice: ChoiceWord | ResponseToolChoice | None = None
    """``none``, ``auto`` (the default with tools), ``required``, one function, or several allowed ones."""
    parallel_tool_calls: bool | None = None
    """False ends the answer with its first call."""
    reasoning: Reasoning | None = None
    """``effort`` says how much the model should reason: it is told to the chat template, which may read it or not, and
    ``none`` also sets the template's ``enable_thinking`` to false. ``summary`` is a hint."""
    chat_template_kwargs: TemplateOptions | None = None
    """Options for the model's chat template, as in a chat."""

    @property
    def toolbox(self) -> Toolbox:
        """The tools and the choice among them."""
        return response_toolbox(self.tools, self.tool_choice, self.parallel_tool_calls)

    @property
    def template_options(self) -> dict[str, Option]:
        """The options that the chat template is rendered with."""
        return template_options(self.chat_template_kwargs, self.reasoning.effort if self.reasoning else None)

    @property
    def conversation_id(self) -> str:
        """The id of the conversation that the response belongs to; empty if it belongs to none."""
        named = self.conversation
        return (named.id if isinstance(named, ConversationName) else named) or ""

    @property
    def begins(self) -> dict[str, str] | None:
        """The metadata of the conversation that the response begins; None if it begins none."""
        named = self.conversation
        return named.metadata if isinstance(named, ConversationName) and named.id is None else None

    def check(self) -> None:
        """Raises ``InvalidInput`` if fields contradict each other or the input is missing."""
        named = self.conversation
        if named == "" or (
            isinstance(named, ConversationName) and (named.id == "" or (named.id is None and named.metadata is None))
        ):
            raise InvalidInput(
                "'conversation' needs an 'id', or 'metadata' to begin a new one.",
                param="conversation.id",
                code="missing_required_parameter",
            )
        if isinstance(named, ConversationName) and named.id is not None and named.metadata is not None:
            raise InvalidInput(
                "'metadata' begins a new conversation; POST /v1/conversations/{id} changes that of another.",
                param="conversation.metadata",
                code="mutually_exclusive_parameters",
            )
        if self.previous_response_id and (self.conversation_id or self.begins is not None):
            raise InvalidInput(
                "'previous_response_id' and 'conversation' cannot be used together.",
                param="previous_response_id",
                code="mutually_exclusive_parameters",
            )
        if not self.input and not (self.previous_response_id or self.conversation_id):
            raise InvalidInput("'input' is missing.", param="input", code="missing_required_parameter")


class ResponseRequest(Context):
    """Body of POST /v1/responses."""

    store: bool | None = None
    background: bool | None = None
    stream: bool | None = None
    metadata: Metadata | None = None
    max_output_tokens: Count | None = None
    temperature: Temperature | None = None
    top_p: Probability | None = None
    include: Many[Included] | None = None
    """``message.output_text.logprobs`` adds log probabilities. The other values ask for what this server's output does
    not have, such as encrypted reasoning, and change nothing."""
    top_logprobs: NumTop | None = None
    text: TextOptions | None = None
    """``format`` says what the answer must be: ``{"type": "json_schema", "name", "schema"}``, ``{"type":
    "json_object"}`` or ``{"type": "text"}``. JSON comes without white space. ``verbosity`` is a hint."""
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    seed: Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)] | None = None
    ignore_eos: bool | None = None
    service_tier: TierName | None = None

    @property
    def streams(self) -> bool:
        """Whether the answer is sent as it comes."""
        return bool(self.stream)

    @property
    def stored(self) -> bool:
        """Whether the response is stored, which is the default."""
        return self.store is not False

    def check(self) -> None:
        Context.check(self)
        if not self.stored and self.background:
            raise InvalidInput(
                "A background response must be stored: no client could read it otherwise.", param="store"
            )
        if not self.stored and (self.conversation_id or self.begins is not None):
            raise InvalidInput("A response in a conversation is a part of it and must be stored.", param="store")

    @property
    def num_logprobs(self) -> int | None:
        """Number of likeliest tokens to report beside each sampled one; None means no log probabilities at all."""
        asked = self.top_logprobs or LOGPROBS in (self.include or ())
        return self.top_logprobs or 0 if asked else None

    @property
    def tier(self) -> Tier:
        """The service tier that the client asks for."""
        return tier_asked(self.service_tier)

    @property
    def form(self) -> Form | None:
        """The form that the answer must have; None for any text."""
        return form_of_text(self.text.format if self.text else None)

    def sampling(self, defaults: ServedVersion) -> Sampling:
        """Returns the sampling parameters; those that the request leaves out are the deployment's defaults."""
        return Sampling(
            max_tokens=self.max_output_tokens or 0,
            temperature=defaults.temperature if self.temperature is None else self.temperature,
            top_k=defaults.top_k,
            repetition_penalty=defaults.repetition_penalty if self.temperature is None else 1.0,
            top_p=defaults.top_p if self.top_p is None else self.top_p,
            logprobs=self.num_logprobs,
            ignore_eos=bool(self.ignore_eos),
        )


class SocketRequest(ResponseRequest):
    """A ``response.create`` event of a WebSocket. It always streams."""

    @property
    def streams(self) -> bool:
        return True


class ConversationRequest(Wire):
    """Body of POST /v1/conversations."""

    items: Annotated[Many[InputItem], Field(max_length=MAX_ITEMS)] | None = None
    metadata: Metadata | None = None


class MetadataRequest(Wire):
    """Body of POST /v1/conversations/{id}."""

    metadata: Metadata


class ItemsRequest(Wire):
    """Body of POST /v1/conversations/{id}/items."""

    items: Annotated[Many[InputItem], Field(min_length=1, max_length=MAX_ITEMS)]
