"""A stream's tokens as OpenAI's clients read them. Pure: what is written depends on the tokens, never on their cuts.

Frames are bare ``data: `` lines: some clients lose every token after a comment, an id or an event line.
"""

from typing import Any

import msgspec

from axon.domain.chunk import Chunk
from axon.domain.job import Job
from axon.domain.turn import TurnState
from axon.domain.usage import Usage
from axon.errors import AxonError, ContextTooLong, EngineError, Expired
from axon.gateway.problems import body_of

DONE = b"data: [DONE]\n\n"
_encode = msgspec.json.Encoder().encode


class Cancelled(AxonError):
    """The request was cancelled."""

    kind = "conflict"
    code = "cancelled"


def failure(chunk: Chunk) -> AxonError | None:
    """Why the stream ended without an answer; None when it did not."""
    match chunk.terminal:
        case TurnState.FAILED if chunk.code == ContextTooLong.code:
            return ContextTooLong(chunk.message or None)
        case TurnState.FAILED:
            return EngineError(chunk.message or None, code=chunk.code or None)
        case TurnState.EXPIRED:
            return Expired(chunk.message or None)
        case TurnState.CANCELLED:
            return Cancelled(chunk.message or None)
    return None


def error_frame(error: AxonError) -> bytes:
    """An error in the middle of a stream, which ends it."""
    return b"data: " + _encode(body_of(error)) + b"\n\n" + DONE


def usage_body(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


class Writer:
    """Writes one reader's frames from where it stands."""

    def __init__(self, job: Job, *, after: int = 0) -> None:
        self._job = job
        self._seq = after
        self._chat = job.reply.get("route") == "chat"
        self._role_due = self._chat and after == 0
        self._include_usage = bool(job.reply.get("include_usage"))
        self._head = {
            "id": job.id,
            "object": "chat.completion.chunk" if self._chat else "text_completion",
            "created": int(job.created),
            "model": job.reply.get("model", job.deployment),
            "system_fingerprint": job.version,
        }

    def frames(self, chunk: Chunk) -> bytes:
        """Everything this chunk adds to the stream; empty while a character is incomplete."""
        self._seq = max(self._seq, chunk.last)
        text = "".join(token.text for token in chunk.tokens)
        out = self._frame(self._delta(text), None) if text else b""
        if error := failure(chunk):
            return out + error_frame(error)
        if not chunk.terminal:
            return out
        if self._role_due:
            out += self._frame(self._delta(""), None)
        for end in chunk.ends:
            out += self._frame({} if self._chat else "", end.reason)
        if self._include_usage:
            out += self._usage_frame()
        return out + DONE

    def silence(self) -> bytes:
        """A frame that says nothing, so that nobody in between takes the stream for dead."""
        return self._frame({} if self._chat else "", None)

    def _delta(self, text: str) -> Any:
        if not self._chat:
            return text
        if self._role_due:
            self._role_due = False
            return {"role": "assistant", "content": text}
        return {"content": text}

    def _frame(self, delta: Any, finish: str | None) -> bytes:
        choice = {"index": 0, "delta" if self._chat else "text": delta, "logprobs": None, "finish_reason": finish}
        return self._line({"choices": [choice]})

    def _usage_frame(self) -> bytes:
        usage = Usage(prompt_tokens=len(self._job.prompt_ids), output_tokens=self._seq)
        return self._line({"choices": [], "usage": usage_body(usage)})

    def _line(self, body: dict[str, Any]) -> bytes:
        return b"data: " + _encode({**self._head, **body, "axon": {"seq": self._seq}}) + b"\n\n"


def whole(job: Job, chunks: list[Chunk]) -> dict[str, Any]:
    """The answer as one object, for a client that does not stream."""
    chat = job.reply.get("route") == "chat"
    text = "".join(token.text for chunk in chunks for token in chunk.tokens)
    reason = next((end.reason for chunk in chunks for end in chunk.ends), "stop")
    answer = {"message": {"role": "assistant", "content": text, "refusal": None}} if chat else {"text": text}
    usage = Usage(prompt_tokens=len(job.prompt_ids), output_tokens=sum(len(chunk.tokens) for chunk in chunks))
    return {
        "id": job.id,
        "object": "chat.completion" if chat else "text_completion",
        "created": int(job.created),
        "model": job.reply.get("model", job.deployment),
        "choices": [{"index": 0, **answer, "logprobs": None, "finish_reason": reason}],
        "usage": usage_body(usage),
        "system_fingerprint": job.version,
    }
