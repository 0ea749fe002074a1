"""OpenAI's request bodies to our values. Nothing below the gateway knows these shapes.

Unknown fields are ignored; a field whose meaning we cannot honour yet is refused by name, never silently dropped.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field

from axon.domain.deployment import Deployment
from axon.domain.sampling import Sampling
from axon.domain.tenant import Tier
from axon.errors import InvalidInput, Unsupported
from axon.gateway.http.body import Many, Wire, at_most

_SEED = 1 << 63
MAX_SCORED = 1 << 18
"""Log probabilities of prompts that a request may ask for."""
MAX_CHOICES = 128
"""Of one request."""

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
"""A text, or the ids of its tokens."""


class TextPart(Wire):
    type: str
    text: str = ""


class Message(Wire):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | Many[TextPart] | None = None
    name: str | None = None


class StreamOptions(Wire):
    include_usage: bool | None = None
    """Ends the stream with a chunk that has no choices and the usage."""
    continuous_usage_stats: bool | None = None
    """With ``include_usage``: every chunk has the usage so far."""


class Request(Wire):
    """What chat and completions share."""

    model: str
    """The deployment's name, as ``GET /v1/models`` lists it."""
    max_tokens: Count | None = None
    """The most tokens of an answer."""
    temperature: Temperature | None = None
    """0 takes the likeliest token; without it, what the model's makers advise."""
    top_p: Probability | None = None
    """Keeps the fewest, likeliest tokens that hold this share of the probability."""
    top_k: Annotated[int, Field(ge=-1, lt=1 << 31)] | None = None
    """Keeps so many of the likeliest tokens; 0 or -1 keeps all."""
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    """Keeps tokens at least this likely, measured against the likeliest."""
    stop: StopText | Annotated[Many[StopText], Field(max_length=4)] | None = None
    """Texts that end the answer; they are not part of it."""
    stop_token_ids: Annotated[Many[Annotated[int, Field(ge=0, lt=1 << 31)]], Field(max_length=64)] | None = None
    """Tokens that end the answer as the model's own end token does."""
    ignore_eos: bool | None = None
    """Goes on past the model's own end token."""
    min_tokens: Annotated[int, Field(ge=0, le=1 << 31)] | None = None
    """No token that ends the answer before so many; stop strings end it all the same."""
    presence_penalty: Penalty | None = None
    """Taken from the logit of every token that the answer has already."""
    frequency_penalty: Penalty | None = None
    """The same, once for each time it has it."""
    repetition_penalty: Annotated[float, Field(gt=0, le=10)] | None = None
    """Makes every token of prompt and answer less likely; 1 changes nothing. Where a request names neither this nor a
    temperature, the packaged default model has 1.15 and every other model 1."""
    logit_bias: Annotated[dict[TokenKey, Bias], *at_most(1024)] | None = None
    """What is added to the logits of these token ids."""
    n: Annotated[int, Field(ge=1, le=MAX_CHOICES)] | None = None
    """How many answers; they share the prompt's computation."""
    seed: Annotated[int, Field(ge=-_SEED, lt=_SEED)] | None = None
    """The same seed, prompt, settings and ``system_fingerprint`` give the same answer."""
    stream: bool | None = None
    """Sends the answer token by token as server-sent events."""
    stream_options: StreamOptions | None = None
    store: bool | None = None
    """Keeps the turn past its retention time."""
    service_tier: TierName | None = None
    """How urgent it is: ``priority`` streams faster than ``default`` on a busy fleet, ``flex`` yields to both. The
    answer says what was given: never more than the tenant's highest."""

    @property
    def include_usage(self) -> bool:
        return bool(self.stream_options and self.stream_options.include_usage)

    @property
    def continuous_usage(self) -> bool:
        return self.include_usage and bool(self.stream_options and self.stream_options.continuous_usage_stats)

    @property
    def num_choices(self) -> int:
        """Answers to each prompt."""
        return self.n or 1

    @property
    def num_logprobs(self) -> int | None:
        """How many likely tokens are asked for beside the chosen one; None: not even that one's log probability."""
        raise NotImplementedError

    @property
    def tier(self) -> Tier:
        """The service tier that is asked for."""
        return tier_asked(self.service_tier)

    def sampling(self, max_tokens: int | None, defaults: Deployment) -> Sampling:
        if max_tokens and self.min_tokens and self.min_tokens > max_tokens:
            raise InvalidInput("'min_tokens' must not be more than 'max_tokens'.", param="min_tokens")
        left_alone = self.temperature is None  # who names a temperature has chosen how to sample
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
            stop=(self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ()),
            stop_ids=tuple(self.stop_token_ids or ()),
            ignore_eos=bool(self.ignore_eos),
        )


def tier_asked(name: TierName | None) -> Tier:
    """The tier of that name; the default one for no name, or ``auto``."""
    return Tier.DEFAULT if name in (None, "auto") else Tier(name)


class ChatRequest(Request):
    """Body of POST /v1/chat/completions."""

    messages: Annotated[Many[Message], Field(min_length=1, max_length=10_000)]
    """The conversation so far; texts only."""
    max_completion_tokens: Count | None = None
    """The same as ``max_tokens``, and goes before it."""
    logprobs: bool | None = None
    """Adds the log probability of every token."""
    top_logprobs: NumTop | None = None
    """With ``logprobs``: adds so many of the likeliest tokens."""

    @property
    def num_logprobs(self) -> int | None:
        if self.top_logprobs and not self.logprobs:
            raise InvalidInput("'top_logprobs' needs 'logprobs' to be true.", param="top_logprobs")
        return self.top_logprobs or 0 if self.logprobs else None

    def texts(self) -> list[dict[str, str]]:
        """Role and text of each message, in the roles that templates know."""
        return [
            {"role": "system" if message.role == "developer" else message.role, "content": _text_of(message, index)}
            for index, message in enumerate(self.messages)
        ]


class CompletionRequest(Request):
    """Body of POST /v1/completions."""

    prompt: str | Many[str] | Many[int] | Many[Many[int]]
    """One text, or the ids of its tokens; or a list of them, of which each gets ``n`` answers: the first prompt's are
    choices 0 to ``n`` - 1, the next one's follow. At most 128 choices in all."""
    max_tokens: Annotated[int, Field(ge=0, le=1 << 31)] | None = None
    """The most tokens of an answer, 16 unless set. 0 with ``echo`` returns the prompt alone; one token is computed and
    counted all the same."""
    logprobs: NumTop | None = None
    """Adds the log probability of every token and of so many of the likeliest ones; with ``echo`` of the prompt's
    tokens as well, the first of which has none: not yet on a GPU or over several ranks."""
    echo: bool | None = None
    """Begins the answer with the prompt."""
    best_of: Annotated[int, Field(ge=1, le=MAX_CHOICES)] | None = None
    """Makes so many answers and returns the ``n`` with the highest log probability per token, the best first. Usage
    counts them all. Not with ``stream``."""

    @property
    def num_choices(self) -> int:
        return self.best_of or self.n or 1

    @property
    def is_chosen_from(self) -> bool:
        """Whether more answers are made than returned."""
        return self.num_choices > (self.n or 1)

    @property
    def num_logprobs(self) -> int | None:
        return 0 if self.logprobs is None and self.is_chosen_from else self.logprobs

    @property
    def scores_prompts(self) -> bool:
        """Whether it asks how likely its prompts are."""
        return bool(self.echo) and self.logprobs is not None

    def sampling(self, max_tokens: int | None, defaults: Deployment) -> Sampling:
        found = super().sampling(max_tokens, defaults)
        return replace(found, prompt_logprobs=True) if self.scores_prompts else found

    def check(self) -> None:
        """Raises when the fields do not go together."""
        if self.max_tokens == 0 and not self.echo:
            raise InvalidInput("'max_tokens' of 0 needs 'echo'.", param="max_tokens")
        if self.num_choices < (self.n or 1):
            raise InvalidInput("'best_of' must not be less than 'n'.", param="best_of")
        if self.stream and self.is_chosen_from:
            raise InvalidInput("'best_of' greater than 'n' cannot be used with 'stream'.", param="best_of")

    def check_scored(self, num_tokens: int) -> None:
        """Raises when so many tokens of prompts are more than can be told of."""
        num_scored = num_tokens * self.num_choices * (1 + (self.logprobs or 0)) if self.scores_prompts else 0
        if num_scored > MAX_SCORED:
            raise InvalidInput(
                f"'echo' with 'logprobs' asks for {num_scored} log probabilities of prompts; a request may have "
                f"{MAX_SCORED}.",
                param="logprobs",
            )

    def prompts(self) -> Sequence[Prompt]:
        """What it asks, one by one; raises when that is nothing, or too much."""
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


# name → the values that mean "as if it were not there"
NOT_YET: dict[str, tuple[Any, ...]] = {
    "suffix": ("",),
    "tools": ([],),
    "functions": ([],),
    "tool_choice": ("none", "auto"),
    "function_call": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    "audio": (),
    "web_search_options": (),
}


def _text_of(message: Message, index: int) -> str:
    place = f"messages.{index}"
    if message.role in ("tool", "function"):
        raise Unsupported("Messages of tools are not supported by this server yet.", param=f"{place}.role")
    if message.content is None:
        raise InvalidInput(f"'{place}.content' must be text.", param=f"{place}.content", code="invalid_type")
    if isinstance(message.content, str):
        return message.content
    for part in message.content:
        if part.type != "text":
            raise Unsupported(f"Content of type '{part.type}' is not supported.", param=f"{place}.content")
    return "".join(part.text for part in message.content)
