"""The JSON of one choice, for chat and for the older completions API. Results depend on the job and tokens alone."""

from collections.abc import Sequence
from typing import Any, Protocol

from axon.domain.chunk import Token
from axon.domain.job import Job
from axon.domain.reply import CompletionReply
from axon.gateway.openai import logprobs


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


def shape_of(job: Job) -> Shape:
    """Returns the shape of the API that the job came by."""
    return CompletionShape(job, job.reply) if isinstance(job.reply, CompletionReply) else ChatShape()


class ChatShape:
    """Chat: a message, with the reasoning in a field of its own."""

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
    """Completions: a text, after the prompt if the client asked for ``echo``."""

    chunk_object = whole_object = "text_completion"
    field = "text"

    def __init__(self, job: Job, reply: CompletionReply) -> None:
        self._reply = reply
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
        num_before = len(self._echoes[choice])
        return logprobs.of_completion(tokens, num_before=num_before, prompt_only=self._reply.prompt_only)

    def whole(self, choice: int, tokens: Sequence[Token]) -> dict[str, Any]:
        found = None if self._reply.hides_logprobs else self.logprobs(choice, tokens)
        return {"text": self.delta(choice, tokens, first=True), "logprobs": found}


def text_of(tokens: Sequence[Token]) -> str:
    """Returns the text of these tokens."""
    return "".join(token.text for token in tokens)


def thinking_of(tokens: Sequence[Token]) -> str:
    """Returns the reasoning text of these tokens."""
    return "".join(token.reasoning for token in tokens)
