"""The bodies of OpenAI's chat and completion requests, and our values made from them. Knows no HTTP.

``directives`` has every field that a known client sends, and what becomes of those that are not here.
Nothing below the gateway knows these bodies.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from axon.domain.content.tool import Toolbox
from axon.domain.model.served_version import ServedVersion
from axon.domain.sampling import Sampling
from axon.domain.tenants.tenant import Tier
from axon.errors import InvalidInput, Unsupported
from axon.gateway.http.body import Many, Wire, at_most
from axon.gateway.openai.formats import Structured
from axon.gateway.openai.pairs import Pairs
from axon.gateway.openai.template_options import Effort, Option, TemplateOptions, template_options
from axon.gateway.openai.tools import (
    MAX_TOOLS,
    ChatTool,
    ChatToolChoice,
    ChoiceWord,
    chat_toolbox,
    check_arguments,
    missing,
    require_function,
)
from axon.text.template import Message as TemplateMessage
from axon.text.tools.prompt import call_message

_SEED_LIMIT = 1 << 63
MAX_SCORED = 1 << 18
"""A request may ask for at most this many log probabilities of prompt tokens."""
MAX_CHOICES = 128
"""A request may ask for at most this many answers, over all its prompts."""

Probability = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Temperature = Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=1 << 31)]
Penalty = Annotated[float, Field(ge=-2, le=2)]
Bias = Annotated[float, Field(ge=-100, le=100)]
TokenKey = Annotated[str, Field(pattern=r"^[0-9]{1,9}$")]
NumTop = Annotated[int, Field(ge=0, le=20)]
StopText = Annotated[str, Field(min_length=1, max_length=256)]
TierName = Literal["auto", "default", "flex", "priority"]
Prompt = str | list[int]
"""A prompt of a completion: its text, or its token ids."""


class TextPart(Wire):
    """A part of a message's content; only those of type ``text`` are supported."""

    type: str
    text: str = ""


class CalledFunction(Wire):
    """The function of a call, with its arguments as JSON text."""

    name: str
    arguments: str


class ToolCall(Wire):
    """A call that the assistant has made; only those of functions are supported."""

    id: str
    type: str = "function"
    function: CalledFunction | None = None


class Message(Wire):
    """One message of a chat."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | Many[TextPart] | None = None
    """The text; it may be null in an assistant's message with ``tool_calls``."""
    name: str | None = None
    tool_calls: Annotated[Many[ToolCall], Field(max_length=MAX_TOOLS)] | None = None
    """The calls of an assistant's message."""
    tool_call_id: str | None = None
    """The id of the call whose result a message of the role ``tool`` is."""


class StreamOptions(Wire):
    """Options of a streamed answer."""

    include_usage: bool | None = None
    """Ends the stream with a chunk that has no choices and the usage."""
    continuous_usage_stats: bool | None = None
    """With ``include_usage``, adds the usage so far to every chunk."""


class Request(Structured):
    """The fields that chat and completion requests share."""

    model: str
    """The deployment's name, as ``GET /v1/models`` lists it."""
    max_tokens: Count | None = None
    """Maximum number of tokens in an answer."""
    temperature: Temperature | None = None
    """Sampling temperature. 0 always takes the likeliest token; without it, the model's own default holds."""
    top_p: Probability | None = None
    """Nucleus sampling: keeps the smallest set of likeliest tokens whose probabilities sum to this."""
    top_k: Annotated[int, Field(ge=-1, lt=1 << 31)] | None = None
    """Keeps this many of the likeliest tokens; 0 or -1 keeps all."""
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    """Keeps the tokens whose probability is at least this fraction of the likeliest token's."""
    stop: StopText | Annotated[Many[StopText], Field(max_length=4)] | None = None
    """Strings that end the answer where they occur; they are not part of it."""
    stop_token_ids: Annotated[Many[Annotated[int, Field(ge=0, lt=1 << 31)]], Field(max_length=64)] | None = None
    """Token ids that end the answer as the model's own end-of-sequence token does."""
    ignore_eos: bool | None = None
    """Continues the answer past the model's end-of-sequence token."""
    min_tokens: Annotated[int, Field(ge=0, le=1 << 31)] | None = None
    """No end-of-sequence or stop token is sampled before the answer has this many tokens; stop strings still end it."""
    presence_penalty: Penalty | None = None
    """Subtracted from the logit of every token that occurs in the answer so far."""
    frequency_penalty: Penalty | None = None
    """Subtracted from a token's logit once for each time that the token occurs in the answer so far."""
    repetition_penalty: Annotated[float, Field(gt=0, le=10)] | None = None
    """Makes every token of prompt and answer less likely; 1 changes nothing. If a request sets neither this nor a
    temperature, the packaged default model uses 1.15 and every other model 1."""
    logit_bias: Annotated[dict[TokenKey, Bias], *at_most(1024)] | None = None
    """Maps token ids to values that are added to their logits."""
    n: Annotated[int, Field(ge=1, le=MAX_CHOICES)] | None = None
    """Number of answers; the prompt is computed once for all of them."""
    seed: Annotated[int, Field(ge=-_SEED_LIMIT, lt=_SEED_LIMIT)] | None = None
    """The same seed, prompt, settings and ``system_fingerprint`` give the same answer."""
    stream: bool | None = None
    """Sends the answer token by token as server-sent events."""
    stream_options: StreamOptions | None = None
    store: bool | None = None
    """Stores the answer past the retention time of streams."""
    prompt_logprobs: NumTop | None = None
    """Adds the log probability and rank of every token of the prompt but the first, and of this many likeliest tokens
    in its place, as vLLM does: in ``prompt_logprobs`` of a chat's answer, or of each choice of a completion. It cannot
    be used with ``stream``."""
    prompt_cache_key: Annotated[str, Field(max_length=1024)] | None = None
    """Names the session that the request belongs to, if no ``x-axon-session`` header does: its turns stay on one
    version of the model."""
    service_tier: TierName | None = None
    """Urgency of the request: ``priority`` streams faster than ``default`` on a busy fleet, ``flex`` yields to both.
    The answer names the tier that was given, at most the highest that the tenant may use."""

    @property
    def include_usage(self) -> bool:
        """Whether the stream ends with the usage."""
        return bool(self.stream_options and self.stream_options.include_usage)

    @property
    def continuous_usage(self) -> bool:
        """Whether every chunk of the stream has the usage so far."""
        return self.include_usage and bool(self.stream_options and self.stream_options.continuous_usage_stats)

    @property
    def num_choices(self) -> int:
        """Number of answers to generate for each prompt."""
        return self.n or 1

    @property
    @abstractmethod
    def num_logprobs(self) -> int | None:
        """Number of likeliest tokens to report beside each sampled one; None means no log probabilities at all."""

    @property
    def scores_prompts(self) -> bool:
        """Whether the request asks for the log probabilities of its prompts' tokens."""
        return self.prompt_logprobs is not None

    @property
    def prompt_top(self) -> int | None:
        """Number of likeliest tokens to compute with ids in the place of each prompt token; None if not asked for."""
        return self.prompt_logprobs

    def check(self) -> None:
        """Raises ``InvalidInput`` if fields contradict each other."""
        if self.stream and self.prompt_logprobs is not None:
            raise InvalidInput("'prompt_logprobs' cannot be used with 'stream'.", param="prompt_logprobs")

    def check_scored(self, num_tokens: int) -> None:
        """Raises ``InvalidInput`` if prompts of ``num_tokens`` in all would need too many log probabilities."""
        if not self.scores_prompts:
            return
        num_top = (self.num_logprobs or 0) if self.prompt_top is None else self.prompt_top
        num_scored = num_tokens * self.num_choices * (1 + num_top)
        if num_scored > MAX_SCORED:
            by_echo = self.prompt_logprobs is None
            asked = "'echo' with 'logprobs'" if by_echo else "'prompt_logprobs'"
            raise InvalidInput(
                f"{asked} asks for {num_scored} log probabilities of prompts; a request may ask for {MAX_SCORED}.",
                param="logprobs" if by_echo else "prompt_logprobs",
            )

    @property
    def tier(self) -> Tier:
        """The service tier that the client asks for."""
        return tier_asked(self.service_tier)

    def sampling(self, max_tokens: int | None, defaults: ServedVersion, *, grammar: str = "") -> Sampling:
        """Returns the sampling parameters; those that the request leaves out are the deployment's defaults."""
        if max_tokens and self.min_tokens and self.min_tokens > max_tokens:
            raise InvalidInput("'min_tokens' must not be more than 'max_tokens'.", param="min_tokens")
        # A client that sets a temperature has chosen how to sample, and gets no repetition penalty that it did not ask.
        left_alone = self.temperature is None
        return Sampling(
            max_tokens=max_tokens or 0,
            temperature=defaults.temperature if self.temperature is None else self.temperature,
            top_k=max(0, defaults.top_k if self.top_k is None else self.top_k),
            top_p=defaults.top_p if self.top_p is None else self.top_p,
            min_p=self.min_p or 0.0,
            presence_penalty=self.presence_penalty or 0.0,
            frequency_penalty=self.frequency_penalty or 0.0,
            repetition_penalty=self.repetition_penalty or (defaults.repetition_penalty if left_alone else 1.0),
            logit_bias=tuple((int(id), bias) for id, bias in (self.logit_bias or {}).items()),
            min_tokens=self.min_tokens or 0,
            logprobs=self.num_logprobs,
            prompt_logprobs=self.scores_prompts,
            prompt_top=self.prompt_top,
            stop=(self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ()),
            stop_ids=tuple(self.stop_token_ids or ()),
            ignore_eos=bool(self.ignore_eos),
            grammar=grammar,
        )


def tier_asked(name: TierName | None) -> Tier:
    """Returns the tier of this name; the default tier for None and ``auto``."""
    return Tier.DEFAULT if name in (None, "auto") else Tier(name)


class ChatRequest(Request):
    """Body of POST /v1/chat/completions."""

    messages: Annotated[Many[Message], Field(min_length=1, max_length=10_000)]
    """The conversation so far; only text content is supported."""
    max_completion_tokens: Count | None = None
    """Newer name of ``max_tokens``; it wins if both are set."""
    logprobs: bool | None = None
    """Adds the log probability of every token."""
    top_logprobs: NumTop | None = None
    """With ``logprobs``, adds the log probabilities of this many likeliest tokens at each position."""
    tools: Annotated[Many[ChatTool], Field(max_length=MAX_TOOLS)] | None = None
    """Functions that the model may call."""
    tool_choice: ChoiceWord | ChatToolChoice | None = None
    """``none``, ``auto`` (the default with tools), ``required``, one function, or several allowed ones."""
    parallel_tool_calls: bool | None = None
    """False ends the answer with its first call."""
    chat_template_kwargs: TemplateOptions | None = None
    """Options for the model's chat template, at most 16: ``{"enable_thinking": false}`` switches off the thinking of
    Qwen3. Names that the server sets itself, such as ``messages``, are refused; names that the template does not read
    change nothing."""
    reasoning_effort: Effort | None = None
    """How much the model should reason: told to the chat template, which may read it or not. ``none`` also sets the
    template's ``enable_thinking`` to false."""

    @property
    def toolbox(self) -> Toolbox:
        """The tools and the choice among them."""
        return chat_toolbox(self.tools, self.tool_choice, self.parallel_tool_calls)

    @property
    def template_options(self) -> dict[str, Option]:
        """The options that the chat template is rendered with."""
        return template_options(self.chat_template_kwargs, self.reasoning_effort)

    @property
    def num_logprobs(self) -> int | None:
        if self.top_logprobs and not self.logprobs:
            raise InvalidInput("'top_logprobs' needs 'logprobs' to be true.", param="top_logprobs")
        return self.top_logprobs or 0 if self.logprobs else None

    def texts(self) -> list[TemplateMessage]:
        """Returns the messages for the model's template; ``developer`` becomes ``system``, which templates know.

        Raises ``InvalidInput`` for a tool call without its result, and for a result without its call.
        """
        pairs = Pairs()
        found = [_template_message(message, index, pairs) for index, message in enumerate(self.messages)]
        pairs.end()
        return found


class CompletionRequest(Request):
    """Body of POST /v1/completions."""

    max_parts_of: ClassVar[Mapping[str, int]] = {"prompt": 4 * MAX_CHOICES}
    """More prompts than a request may have choices, so that a few too many are refused by their number."""
    prompt: str | Many[str] | Many[int] | Many[Many[int]]
    """One prompt, as text or token ids, or a list of prompts. Each prompt gets ``n`` answers: those of the first prompt
    are choices 0 to ``n`` - 1, those of the next one follow. A request may have at most 128 choices in all."""
    max_tokens: Annotated[int, Field(ge=0, le=1 << 31)] | None = None
    """Maximum number of tokens in an answer; 16 by default. 0 with ``echo`` returns the prompt alone; even then one
    token is computed and counted."""
    logprobs: NumTop | None = None
    """Adds the log probability of every token and of this many likeliest ones. With ``echo``, the prompt's tokens have
    them too, except the first."""
    echo: bool | None = None
    """Begins the answer with the prompt."""
    best_of: Annotated[int, Field(ge=1, le=MAX_CHOICES)] | None = None
    """Generates this many answers and returns the ``n`` with the highest mean log probability per token, the best
    first. The usage counts all of them. It cannot be used with ``stream``."""

    @property
    def num_choices(self) -> int:
        return self.best_of or self.n or 1

    @property
    def is_chosen_from(self) -> bool:
        """Whether more answers are generated than returned."""
        return self.num_choices > (self.n or 1)

    @property
    def num_logprobs(self) -> int | None:
        return 0 if self.logprobs is None and self.is_chosen_from else self.logprobs

    @property
    def scores_prompts(self) -> bool:
        return super().scores_prompts or (bool(self.echo) and self.logprobs is not None)

    @property
    def prompt_top(self) -> int | None:
        if self.prompt_logprobs is None or not self.echo:
            return self.prompt_logprobs
        return max(self.prompt_logprobs, self.logprobs or 0)

    def check(self) -> None:
        super().check()
        if self.max_tokens == 0 and not self.echo:
            raise InvalidInput("'max_tokens' of 0 needs 'echo'.", param="max_tokens")
        if self.num_choices < (self.n or 1):
            raise InvalidInput("'best_of' must not be less than 'n'.", param="best_of")
        if self.stream and self.is_chosen_from:
            raise InvalidInput("'best_of' greater than 'n' cannot be used with 'stream'.", param="best_of")

    def prompts(self) -> Sequence[Prompt]:
        """Returns the request's prompts; raises ``InvalidInput`` if one is empty, or if they need too many choices."""
        given: Any = self.prompt
        is_one = isinstance(given, str) or (given and isinstance(given[0], int))
        found: list[Prompt] = [given] if is_one else given
        if not found or not all(found):
            raise InvalidInput("'prompt' must not be empty.", param="prompt")
        num_choices = len(found) * self.num_choices
        if num_choices > MAX_CHOICES:
            raise InvalidInput(
                f"'prompt' has {len(found)} prompts, which makes {num_choices} choices with {self.num_choices} of "
                f"each; a request may have {MAX_CHOICES}.",
                param="prompt",
            )
        return found


def _template_message(message: Message, index: int, pairs: Pairs) -> TemplateMessage:
    """Returns the message of this index as templates read it. ``pairs`` has the tool calls before it."""
    path = f"messages.{index}"
    if message.role == "function":
        raise Unsupported("Messages of the role 'function' are not supported; use 'tool'.", param=f"{path}.role")
    role = "system" if message.role == "developer" else message.role
    if role == "tool":
        return {"role": role, "content": _text_of(message, path), **_result_of(message, index, pairs)}
    pairs.end()
    if role != "assistant" or not message.tool_calls:
        return {"role": role, "content": _text_of(message, path)}
    calls = [_call(call, f"{path}.tool_calls.{index}") for index, call in enumerate(message.tool_calls)]
    pairs.called({call.id: call.function.name for call in message.tool_calls if call.function}, index)
    return {"role": role, "content": "" if message.content is None else _text_of(message, path), "tool_calls": calls}


def _call(call: ToolCall, path: str) -> TemplateMessage:
    require_function(call.type, f"{path}.type")
    if call.function is None:
        raise missing(f"{path}.function")
    check_arguments(call.function.arguments, f"{path}.function.arguments")
    return call_message(call.id, call.function.name, call.function.arguments)


def _result_of(message: Message, index: int, pairs: Pairs) -> TemplateMessage:
    """Returns the call that a result belongs to."""
    if message.tool_call_id is None:
        raise missing(f"messages.{index}.tool_call_id")
    return {"tool_call_id": message.tool_call_id, "name": pairs.result(message.tool_call_id, index)}


def _text_of(message: Message, path: str) -> str:
    """Returns the text of a message; raises if it has content that is no text."""
    if message.content is None:
        raise InvalidInput(f"'{path}.content' must be text.", param=f"{path}.content", code="invalid_type")
    if isinstance(message.content, str):
        return message.content
    for part in message.content:
        if part.type != "text":
            raise Unsupported(f"Content of type '{part.type}' is not supported.", param=f"{path}.content")
    return "".join(part.text for part in message.content)
