"""Encodes an answer as Ollama's API has it: one JSON object a line, times in nanoseconds. No I/O, no clock."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from axon.domain.job import Job
from axon.domain.log.chunk import Chunk, Token
from axon.domain.turn import ended, opened
from axon.errors import AxonError
from axon.gateway.http import ollama
from axon.gateway.offers.wait import Wait
from axon.gateway.openai import logprobs
from axon.gateway.openai.calls import pieces_of
from axon.gateway.openai.encoders.embedded import Embedded
from axon.gateway.openai.encoders.vectors import cut, embedding_bodies
from axon.gateway.openai.outcome import failure
from axon.gateway.openai.shape import text_of, thinking_of

_encode = msgspec.json.Encoder().encode
_LENGTH = "length"


def time_text(seconds: float) -> str:
    """Returns a Unix time as Ollama writes it: RFC 3339, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


class Writer:
    """Encodes one reader's lines. ``generates`` says that the answer is that of /api/generate, else of /api/chat."""

    def __init__(self, job: Job, *, generates: bool, with_logprobs: bool) -> None:
        self._job, self._generates, self._with_logprobs = job, generates, with_logprobs
        self._chunks: list[Chunk] = []

    def opening(self) -> bytes:
        return b""

    def frames(self, chunk: Chunk) -> bytes:
        """Returns the line of the chunk's tokens and, if it is the terminal one, those of calls and the end."""
        self._chunks.append(chunk)
        lines = self._line(chunk.tokens) if _speaks(chunk.tokens) else b""
        if not chunk.terminal:
            return lines
        if error := failure(chunk, self._job.reply):
            return lines + self.error(error)
        tokens = [token for each in self._chunks for token in each.tokens]
        if calls := _calls(tokens):
            lines += self._object({"message": {"role": "assistant", "content": "", "tool_calls": calls}}, done=False)
        return lines + _encode(final_body(self._job, self._chunks, generates=self._generates)) + b"\n"

    def queued(self, wait: Wait) -> bytes:
        return b""

    def silence(self) -> bytes:
        """Returns a line without text."""
        return self._line(())

    def error(self, error: AxonError) -> bytes:
        return _encode(ollama.body_of(error)) + b"\n"

    def _line(self, tokens: Sequence[Token]) -> bytes:
        body = content_body(tokens, generates=self._generates)
        if self._with_logprobs and (scored := logprobs.of_chat(tokens)):
            body["logprobs"] = scored["content"]
        return self._object(body, done=False)

    def _object(self, body: dict[str, Any], *, done: bool) -> bytes:
        return _encode({**head_body(self._job), **body, "done": done}) + b"\n"


def whole_body(job: Job, chunks: Sequence[Chunk], *, generates: bool, with_logprobs: bool) -> dict[str, Any]:
    """Returns the whole answer as one object. ``chunks`` are all of a complete turn."""
    tokens = [token for chunk in chunks for token in chunk.tokens]
    body = final_body(job, chunks, generates=generates) | content_body(tokens, generates=generates)
    if calls := _calls(tokens):
        body["message"]["tool_calls"] = calls
    if with_logprobs and (scored := logprobs.of_chat(tokens)):
        body["logprobs"] = scored["content"]
    return body


def loaded_body(model: str, now: float, *, generates: bool) -> dict[str, Any]:
    """Returns the answer to a request without a prompt, which only asks that the model be loaded."""
    head = {"model": model, "created_at": time_text(now), **content_body((), generates=generates)}
    return {**head, "done": True, "done_reason": "load"}


def head_body(job: Job) -> dict[str, Any]:
    """Returns the fields that every line has."""
    return {"model": job.reply.model or job.deployment, "created_at": time_text(job.created)}


def content_body(tokens: Sequence[Token], *, generates: bool) -> dict[str, Any]:
    """Returns the text of tokens and their reasoning."""
    text, thinking = text_of(tokens), thinking_of(tokens)
    more = {"thinking": thinking} if thinking else {}
    if generates:
        return {"response": text, **more}
    return {"message": {"role": "assistant", "content": text, **more}}


def final_body(job: Job, chunks: Sequence[Chunk], *, generates: bool) -> dict[str, Any]:
    """Returns the last line: why the answer ended, and what it took. ``load_duration`` is the time in the queue."""
    turn = ended(opened(job), tuple(chunks), at=job.created)
    reason = turn.ends[0].reason if turn.ends else ""
    ledger = turn.ledger
    return {
        **head_body(job),
        **content_body((), generates=generates),
        "done": True,
        "done_reason": _LENGTH if reason == _LENGTH else "stop",
        "total_duration": _ns(ledger.whole_s if ledger else 0.0),
        "load_duration": _ns(ledger.queue_s if ledger else 0.0),
        "prompt_eval_count": turn.usage.prompt_tokens,
        "prompt_eval_duration": _ns(ledger.prefill_s if ledger else 0.0),
        "eval_count": turn.usage.output_tokens,
        "eval_duration": _ns(ledger.decode_s if ledger else 0.0),
    }


def vectors_body(model: str, found: Embedded, *, size: int, took_s: float) -> bytes:
    """Returns the answer with the vectors of all texts, as JSON."""
    vectors = embedding_bodies([cut(vector, size) for vector in found.vectors], is_base64=False)
    body = {
        "model": model,
        "embeddings": [each["embedding"] for each in vectors],
        "total_duration": _ns(took_s),
        "load_duration": 0,
        "prompt_eval_count": found.num_tokens,
    }
    return msgspec.json.encode(body)


def _speaks(tokens: Sequence[Token]) -> bool:
    return any(token.text or token.reasoning for token in tokens)


def _calls(tokens: Sequence[Token]) -> list[dict[str, Any]]:
    """Returns the calls, with their arguments as objects; arguments that were cut off are left out."""
    return [{"function": {"name": each.name, "arguments": _arguments(each.arguments)}} for each in pieces_of(tokens)]


def _arguments(text: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _ns(seconds: float) -> int:
    return max(0, round(seconds * 1e9))
