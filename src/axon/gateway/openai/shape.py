"""How one choice looks to OpenAI's clients: chat's shape and the older one of completions. Pure functions of tokens."""

from collections.abc import Sequence
from typing import Any, Protocol

from axon.domain.chunk import Token
from axon.domain.job import Job
from axon.domain.reply import CompletionReply
from axon.gateway.openai import logprobs


class Shape(Protocol):
    """What differs between the two APIs that share frames."""

    chunk_object: str
    whole_object: str
    field: str
    """Where a chunk has its text."""

    @property
    def empty(self) -> Any:
        """What stands there in a chunk without text."""

    def opens(self) -> bool:
        """Whether every choice begins with a frame, even where its first tokens complete no character."""

    def speaks(self, tokens: Sequence[Token]) -> bool:
        """Whether these tokens have any text to show."""

    def delta(self, choice: int, tokens: Sequence[Token], *, first: bool) -> Any:
        """The text of these tokens of one choice; ``first`` where nothing was shown of it before."""

    def logprobs(self, choice: int, tokens: Sequence[Token]) -> dict[str, Any] | None:
        """Their log probabilities; None where none were asked for."""

    def whole(self, choice: int, tokens: Sequence[Token]) -> dict[str, Any]:
        """A choice's whole answer."""


def shape_of(job: Job) -> Shape:
    """The shape that the job's client reads."""
    return CompletionShape(job, job.reply) if isinstance(job.reply, CompletionReply) else ChatShape()


class ChatShape:
    """A message, with the thinking apart."""

    chunk_object, whole_object, field = "chat.completion.chunk", "chat.completion", "delta"

    @property
    def empty(self) -> Any:
        return {}

    def opens(self) -> bool:
        return True

    def speaks(self, tokens: Sequence[Token]) -> bool:
        return any(token.text or token.reasoning for token in tokens)

    def delta(self, choice: int, tokens: Sequence[Token], *, first: bool) -> Any:
        text = text_of(tokens)
        delta = {"role": "assistant", "content": text} if first else {"content": text}
        thinking = thinking_of(tokens)
        return {**delta, "reasoning_content": thinking} if thinking else delta

    def logprobs(self, choice: int, tokens: Sequence[Token]) -> dict[str, Any] | None:
        return logprobs.of_chat(tokens)

    def whole(self, choice: int, tokens: Sequence[Token]) -> dict[str, Any]:
        message = {"role": "assistant", "content": text_of(tokens), "refusal": None}
        if thinking := thinking_of(tokens):
            message["reasoning_content"] = thinking
        return {"message": message, "logprobs": self.logprobs(choice, tokens)}


class CompletionShape:
    """A text, behind its echoed prompt where that was asked for."""

    chunk_object = whole_object = "text_completion"
    field = "text"

    def __init__(self, job: Job, reply: CompletionReply) -> None:
        self._reply = reply
        self._echoes = [reply.echo_of(choice // job.choices_each) for choice in range(job.choices)]

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
        num_before = len(self._echoes[choice])
        return logprobs.of_completion(tokens, num_before=num_before, prompt_only=self._reply.prompt_only)

    def whole(self, choice: int, tokens: Sequence[Token]) -> dict[str, Any]:
        found = None if self._reply.hides_logprobs else self.logprobs(choice, tokens)
        return {"text": self.delta(choice, tokens, first=True), "logprobs": found}


def text_of(tokens: Sequence[Token]) -> str:
    """The text that these tokens make."""
    return "".join(token.text for token in tokens)


def thinking_of(tokens: Sequence[Token]) -> str:
    """The thinking that these tokens make."""
    return "".join(token.reasoning for token in tokens)
