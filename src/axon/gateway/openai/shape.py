"""The JSON of one choice, for chat and for the older completions API. Results depend on the job and tokens alone."""

from collections.abc import Sequence
from typing import Any, Protocol

from axon.domain.job import Job
from axon.domain.log.chunk import Token
from axon.domain.reply import ChatReply, CompletionReply
from axon.gateway.openai import logprobs
from axon.gateway.openai.calls import call_bodies, call_deltas


class Shape(Protocol):
    """The parts of a frame that differ between chat and completions."""

    chunk_object: str
    """The value of ``object`` in a streamed chunk."""
    whole_object: str
    """The value of ``object`` in a whole answer."""
    field: str
    """The field of a streamed choice that holds its text."""

    @property
    def empty(self) -> Any:
        """The value of ``field`` in a chunk without text."""

    def opens(self) -> bool:
        """Whether every choice begins with a frame, even if its first tokens do not complete a character."""

    def speaks(self, tokens: Sequence[Token]) -> bool:
        """Whether these tokens have any text that the client is sent."""

    def delta(self, choice: int, tokens: Sequence[Token], *, first: bool) -> Any:
        """Returns the value of ``field`` for these tokens; ``first`` says that the choice was not sent before."""

    def logprobs(self, choice: int, tokens: Sequence[Token]) -> dict[str, Any] | None:
        """Returns the tokens' log probabilities; None if the client did not ask for them."""

    def whole(self, choice: int, tokens: Sequence[Token]) -> dict[str, Any]:
        """Returns the text and log probabilities of a whole choice."""

    def more(self, tokens: Sequence[Token]) -> dict[str, Any]:
        """Returns the fields that a whole answer has beside its choices; ``tokens`` are those of the first choice."""


def shape_of(job: Job) -> Shape:
    """Returns the shape of the API that the job came by."""
    return CompletionShape(job, job.reply) if isinstance(job.reply, CompletionReply) else ChatShape(job)


class ChatShape:
    """Chat: a message, with the reasoning and the tool calls in fields of their own."""

    chunk_object, whole_object, field = "chat.completion.chunk", "chat.completion", "delta"

    def __init__(self, job: Job) -> None:
        self._turn_id, self._may_call = job.id, bool(job.call_format)
        self._prompt_ids = job.prompt_ids
        self._prompt_logprobs = job.reply.prompt_logprobs if isinstance(job.reply, ChatReply) else None

    @property
    def empty(self) -> Any:
        return {}

    def opens(self) -> bool:
        return True

    def speaks(self, tokens: Sequence[Token]) -> bool:
        return any(token.text or (token.details and (token.reasoning or token.details.calls)) for token in tokens)

    def delta(self, choice: int, tokens: Sequence[Token], *, first: bool) -> Any:
        text = text_of(tokens)
        delta: dict[str, Any] = {"role": "assistant", "content": text} if first else {"content": text}
        if thinking := thinking_of(tokens):
            delta["reasoning_content"] = thinking
        if not self._may_call:
            return delta
        if not text and first:
            delta["content"] = None  # an answer that only calls has no content
        calls = call_deltas(self._turn_id, choice, tokens)
        if calls and not text and not first:
            del delta["content"]
        return {**delta, "tool_calls": calls} if calls else delta

    def logprobs(self, choice: int, tokens: Sequence[Token]) -> dict[str, Any] | None:
        return logprobs.of_chat(tokens)

    def whole(self, choice: int, tokens: Sequence[Token]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": text_of(tokens), "refusal": None}
        if calls := call_bodies(self._turn_id, choice, tokens) if self._may_call else []:
            message |= {"content": message["content"] or None, "tool_calls": calls}
        if thinking := thinking_of(tokens):
            message["reasoning_content"] = thinking
        return {"message": message, "logprobs": self.logprobs(choice, tokens)}

    def more(self, tokens: Sequence[Token]) -> dict[str, Any]:
        if self._prompt_logprobs is None:
            return {}
        return {"prompt_logprobs": logprobs.of_prompt(self._prompt_ids, tokens, self._prompt_logprobs)}


class CompletionShape:
    """Completions: a text, after the prompt if the client asked for ``echo``."""

    chunk_object = whole_object = "text_completion"
    field = "text"

    def __init__(self, job: Job, reply: CompletionReply) -> None:
        self._job, self._reply = job, reply
        self._echoes = [reply.echo_of(choice // job.choices_each) for choice in range(job.choices)]
        """The text before each choice: its prompt, or nothing."""

    @property
    def empty(self) -> Any:
        return ""

    def opens(self) -> bool:
        return any(self._echoes)

    def speaks(self, tokens: Sequence[Token]) -> bool:
        return not self._reply.prompt_only and any(token.text for token in tokens)

    def delta(self, choice: int, tokens: Sequence[Token], *, first: bool) -> Any:
        text = "" if self._reply.prompt_only else text_of(tokens)
        return self._echoes[choice] + text if first else text

    def logprobs(self, choice: int, tokens: Sequence[Token]) -> dict[str, Any] | None:
        return logprobs.of_completion(
            tokens,
            echoed_top=(self._job.sampling.logprobs or 0) if self._reply.echo else None,
            num_before=len(self._echoes[choice]),
            prompt_only=self._reply.prompt_only,
        )

    def whole(self, choice: int, tokens: Sequence[Token]) -> dict[str, Any]:
        found = None if self._reply.hides_logprobs else self.logprobs(choice, tokens)
        body = {"text": self.delta(choice, tokens, first=True), "logprobs": found}
        num_top = self._reply.prompt_logprobs
        if num_top is None:
            return body
        return {**body, "prompt_logprobs": logprobs.of_prompt(self._job.prompt_of(choice), tokens, num_top)}

    def more(self, tokens: Sequence[Token]) -> dict[str, Any]:
        return {}


def text_of(tokens: Sequence[Token]) -> str:
    """Returns the text of these tokens."""
    return "".join(token.text for token in tokens)


def thinking_of(tokens: Sequence[Token]) -> str:
    """Returns the reasoning text of these tokens."""
    return "".join(token.reasoning for token in tokens)
