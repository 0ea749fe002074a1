"""Encodes a response's stream as the numbered events of the Responses API. No I/O, no clock.

    created (queued) in_progress  item.added part.added  delta …  text.done part.done item.done  completed | …
    └───────── the job ─────────┘ └── the first text ─┘  └ each ┘ └──────────────── the end ─────────────────┘

A turn that waits for the first worker of its version is ``queued`` until it has a token; while it waits, that event is
repeated with its number whenever its place in the line or the time that it may take has changed.

A model's reasoning is an item of its own before the answer; it ends where the answer begins.

Events are numbered from 0 without gaps, and depend on the job and its tokens alone, not on how the log cut the tokens
into chunks nor on which gateway encodes them. So a client that comes back with the last number it has seen gets the
rest from any gateway, byte for byte, as long as the response is kept.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from axon.domain.chunk import Chunk
from axon.domain.conversation import answer, answer_id
from axon.domain.job import Job
from axon.domain.turn import Turn, TurnState, ended, opened
from axon.errors import AxonError, StreamDiverged
from axon.gateway.offers.wait import Wait
from axon.gateway.openai.shape import thinking_of
from axon.gateway.responses.body import (
    likelihoods,
    message_body,
    queued,
    response_body,
    status_of,
    thinking_head,
    thinking_id,
    thought_part,
)
from axon.gateway.responses.items import part_body
from axon.gateway.turn.waiting import wait_body

_SILENCE = b": \n\n"
_BEYOND = 1 << 53
"""A number beyond every event's."""
_encode = msgspec.json.Encoder().encode
_TERMINAL = {"completed": "response.completed", "failed": "response.failed"}
"""The name of the last event by the response's status; any other status ends with ``response.incomplete``."""


def last_number(turn: Turn) -> int:
    """Returns the number of the last event of a response that has ended."""
    writer = Writer(turn.job, after=_BEYOND)
    writer.opening()
    writer.frames(turn.chunk())
    return writer.num_events - 1


class Writer:
    """Encodes one reader's events past the number ``after``. It must be given the stream from its first token on."""

    def __init__(self, job: Job, *, after: int = -1, with_ledger: bool = False, wait: Wait | None = None) -> None:
        """``wait`` says how the turn waits now."""
        self._job, self._after, self._with_ledger, self._wait = job, after, with_ledger, wait
        self._number = 0
        self._has_begun = not job.queued
        """Whether ``response.in_progress`` has its number."""
        self._chunks: list[Chunk] = []
        self._thoughts: list[str] = []
        self._in_reasoning = False
        """Whether the reasoning item was added and is not done."""
        self._has_message = False
        """Whether the message item was added."""
        self._pending_logprobs: list[dict[str, Any]] = []
        """Log probabilities of tokens that have not completed a character yet."""

    @property
    def num_events(self) -> int:
        """Number of events so far, those included that the reader has seen."""
        return self._number

    def opening(self) -> bytes:
        """Returns the events that come before the first token."""
        turn = opened(self._job)
        frames = self._event("response.created", {"response": response_body(turn, status=queued(self._job))})
        if self._job.background or self._job.queued:
            frames += self._event("response.queued", self._queued_body(self._wait))
        return frames if self._job.queued else frames + self._in_progress()

    def queued(self, wait: Wait) -> bytes:
        """Returns the event that says how the turn waits now. It repeats the last number, as a reader that comes back
        need not have it."""
        return b"" if self._has_begun else _frame("response.queued", self._number - 1, self._queued_body(wait))

    def frames(self, chunk: Chunk) -> bytes:
        """Returns the events of this chunk; a token that does not complete a character adds none."""
        self._chunks.append(chunk)
        begun = b"" if self._has_begun else self._in_progress()
        self._has_begun = True
        return begun + b"".join(self._of_chunk(chunk))

    def silence(self) -> bytes:
        """Returns an SSE comment, which keeps the connection alive and has no number."""
        return _SILENCE

    def error(self, error: AxonError) -> bytes:
        """Returns the event that says why the stream breaks off. It repeats the last number, as it is none of the
        response's own events."""
        body = {"code": error.code, "message": error.message, "param": error.param}
        return _frame("error", max(self._number - 1, self._after, 0), body)

    def _in_progress(self) -> bytes:
        return self._event("response.in_progress", {"response": response_body(opened(self._job))})

    def _queued_body(self, wait: Wait | None) -> dict[str, Any]:
        body: dict[str, Any] = {"response": response_body(opened(self._job), status="queued")}
        return body | {"axon": {"queue": wait_body(wait)}} if wait is not None else body

    def _of_chunk(self, chunk: Chunk) -> Iterator[bytes]:
        """Yields the events of this chunk's tokens and, if it is the terminal one, those of the end."""
        for token in chunk.tokens:
            if thought := thinking_of([token]):
                yield self._reasoning_delta(thought)
            self._pending_logprobs += likelihoods(token)
            if token.text:
                yield self._text_delta(token.text)
        if chunk.terminal:
            yield self._end(ended(opened(self._job), tuple(self._chunks), at=self._job.created))

    def _reasoning_delta(self, thought: str) -> bytes:
        frames = b""
        if not self._thoughts:
            self._in_reasoning = True
            frames += self._event(
                "response.output_item.added",
                {"output_index": 0, "item": thinking_head(self._job.id, "in_progress")},
            )
            frames += self._event("response.content_part.added", {**self._reasoning_part, "part": thought_part("")})
        self._thoughts.append(thought)
        return frames + self._event("response.reasoning_text.delta", {**self._reasoning_part, "delta": thought})

    def _reasoning_done(self, status: str) -> bytes:
        """Returns the events that end the reasoning item; none if it is not open."""
        if not self._in_reasoning:
            return b""
        self._in_reasoning = False
        part = thought_part("".join(self._thoughts))
        item = {**thinking_head(self._job.id, status), "content": [part]}
        frames = self._event("response.reasoning_text.done", {**self._reasoning_part, "text": part["text"]})
        frames += self._event("response.content_part.done", {**self._reasoning_part, "part": part})
        return frames + self._event("response.output_item.done", {"output_index": 0, "item": item})

    def _text_delta(self, text: str) -> bytes:
        frames = self._reasoning_done("completed") + self._message_added()
        known, self._pending_logprobs = self._pending_logprobs, []
        return frames + self._event(
            "response.output_text.delta", {**self._message_part, "delta": text, "logprobs": known}
        )

    def _message_added(self) -> bytes:
        """Returns the events that begin the message item; none if it has begun."""
        if self._has_message:
            return b""
        self._has_message = True
        item_id = answer_id(self._job.id)
        item = {"id": item_id, "type": "message", "status": "in_progress", "role": "assistant", "content": []}
        added = self._event("response.output_item.added", {"output_index": self._index, "item": item})
        return added + self._event(
            "response.content_part.added", {**self._message_part, "part": part_body("assistant", "")}
        )

    def _end(self, turn: Turn) -> bytes:
        frames = self._reasoning_done(answer(turn).status)
        if self._has_message or turn.state is TurnState.COMPLETED:
            frames += self._message_added() + self._message_done(message_body(turn))
        name = _TERMINAL.get(status_of(turn), "response.incomplete")
        last = self._number
        end = self._event(name, {"response": response_body(turn, with_ledger=self._with_ledger)})
        if self._after <= last:
            return frames + end
        # The reader has a later number than there is: an earlier attempt had more events, which the log has lost.
        if turn.state is TurnState.COMPLETED:
            return self.error(StreamDiverged())
        return _frame(name, last, {"response": response_body(turn, with_ledger=self._with_ledger)})

    def _message_done(self, item: dict[str, Any]) -> bytes:
        [part] = item["content"]
        text = {"text": part["text"], "logprobs": part["logprobs"]}
        frames = self._event("response.output_text.done", {**self._message_part, **text})
        frames += self._event("response.content_part.done", {**self._message_part, "part": part})
        return frames + self._event("response.output_item.done", {"output_index": self._index, "item": item})

    @property
    def _index(self) -> int:
        """The index of the message item in the output."""
        return 1 if self._thoughts else 0

    @property
    def _message_part(self) -> dict[str, Any]:
        """The fields by which an event names the message's content part."""
        return {"item_id": answer_id(self._job.id), "output_index": self._index, "content_index": 0}

    @property
    def _reasoning_part(self) -> dict[str, Any]:
        """The fields by which an event names the reasoning's content part."""
        return {"item_id": thinking_id(self._job.id), "output_index": 0, "content_index": 0}

    def _event(self, name: str, body: dict[str, Any]) -> bytes:
        """Takes the next number and returns its event; no bytes if the reader has seen it."""
        number = self._number
        self._number += 1
        return b"" if number <= self._after else _frame(name, number, body)


def _frame(name: str, number: int, body: dict[str, Any]) -> bytes:
    data = _encode({"type": name, "sequence_number": number, **body})
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"
