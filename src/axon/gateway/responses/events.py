"""Encodes a response's stream as the numbered events of the Responses API. No I/O, no clock.

    created (queued) in_progress  item.added part.added  delta …  text.done part.done item.done  completed | …
    └───────── the job ─────────┘ └── the first text ─┘  └ each ┘ └──────────────── the end ─────────────────┘

A turn that waits for the first worker of its version is ``queued`` until it has a token; while it waits, that event is
repeated with its number whenever its place in the line or the time that it may take has changed.

A model's reasoning is an item of its own before the answer; it ends where the answer begins. A tool call is an item as
well, with deltas of its arguments; it ends where the next item begins.

Events are numbered from 0 without gaps, and depend on the job and its tokens alone, not on how the log cut the tokens
into chunks nor on which gateway encodes them. So a client that comes back with the last number it has seen gets the
rest from any gateway, byte for byte, as long as the response is kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from axon.domain.content.item import Item
from axon.domain.content.tool_call import CallPiece, call_id
from axon.domain.job import Job
from axon.domain.log.chunk import Chunk
from axon.domain.session.conversation import answer_id, answer_status, call_item_id
from axon.domain.turn import Turn, TurnState, ended, opened
from axon.errors import AxonError, StreamDiverged
from axon.gateway.offers.wait import Wait
from axon.gateway.openai.shape import thinking_of
from axon.gateway.responses.body import (
    likelihoods,
    queued,
    response_body,
    status_of,
    thinking_head,
    thinking_id,
    thought_part,
)
from axon.gateway.responses.envelope import SSE, Envelope
from axon.gateway.responses.items import call_body, part_body
from axon.gateway.turn.waiting import wait_body

_BEYOND = 1 << 53
"""A number beyond every event's."""
_TERMINAL = {"completed": "response.completed", "failed": "response.failed"}
"""The name of the last event by the response's status; any other status ends with ``response.incomplete``."""


def last_number(turn: Turn) -> int:
    """Returns the number of the last event of a response that has ended."""
    writer = Writer(turn.job, after=_BEYOND)
    writer.opening()
    writer.frames(turn.chunk())
    return writer.num_events - 1


Ends = list[tuple[str, dict[str, Any]]]
"""Names and bodies of the events that end an item before ``response.output_item.done``."""


@dataclass(slots=True)
class _Thoughts:
    """The open reasoning item."""

    place: dict[str, Any]
    """The fields by which an event names the item."""
    texts: list[str] = field(default_factory=list)

    @property
    def part(self) -> dict[str, Any]:
        """The fields by which an event names the item's content part."""
        return {**self.place, "content_index": 0}

    def body(self, status: str) -> dict[str, Any]:
        head = {"id": self.place["item_id"], "type": "reasoning", "status": status, "summary": []}
        return {**head, "content": [thought_part("".join(self.texts))]}

    def ends(self, body: dict[str, Any]) -> Ends:
        [part] = body["content"]
        return [
            ("response.reasoning_text.done", {**self.part, "text": part["text"]}),
            ("response.content_part.done", {**self.part, "part": part}),
        ]


@dataclass(slots=True)
class _Text:
    """The open message item."""

    place: dict[str, Any]
    texts: list[str] = field(default_factory=list)
    logprobs: list[dict[str, Any]] = field(default_factory=list)

    @property
    def part(self) -> dict[str, Any]:
        return {**self.place, "content_index": 0}

    def body(self, status: str) -> dict[str, Any]:
        part = {**part_body("assistant", "".join(self.texts)), "logprobs": self.logprobs}
        head = {"id": self.place["item_id"], "type": "message", "status": status, "role": "assistant"}
        return {**head, "content": [part]}

    def ends(self, body: dict[str, Any]) -> Ends:
        [part] = body["content"]
        text = {"text": part["text"], "logprobs": part["logprobs"]}
        return [
            ("response.output_text.done", {**self.part, **text}),
            ("response.content_part.done", {**self.part, "part": part}),
        ]


@dataclass(slots=True)
class _Call:
    """The open function call."""

    place: dict[str, Any]
    index: int
    name: str
    call_id: str
    texts: list[str] = field(default_factory=list)

    def body(self, status: str) -> dict[str, Any]:
        return call_body(
            Item(
                type="function_call",
                id=self.place["item_id"],
                role="assistant",
                texts=tuple(self.texts),
                status=status,
                call_id=self.call_id,
                name=self.name,
            )
        )

    def ends(self, body: dict[str, Any]) -> Ends:
        done = {**self.place, "name": body["name"], "arguments": body["arguments"]}
        return [("response.function_call_arguments.done", done)]


class Writer:
    """Encodes one reader's events past the number ``after``. It must be given the stream from its first token on."""

    def __init__(
        self,
        job: Job,
        *,
        after: int = -1,
        with_ledger: bool = False,
        wait: Wait | None = None,
        envelope: Envelope = SSE,
    ) -> None:
        """``wait`` says how the turn waits now; ``envelope`` is the transport's."""
        self._envelope = envelope
        self._job, self._after, self._with_ledger, self._wait = job, after, with_ledger, wait
        self._number = 0
        self._has_begun = not job.queued
        """Whether ``response.in_progress`` has its number."""
        self._chunks: list[Chunk] = []
        self._open: _Thoughts | _Text | _Call | None = None
        """The output item that was added and is not done."""
        self._num_items = self._num_texts = 0
        """Output items, and texts among them, that were added."""
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
        return (
            b""
            if self._has_begun
            else self._envelope.event("response.queued", self._number - 1, self._queued_body(wait))
        )

    def frames(self, chunk: Chunk) -> bytes:
        """Returns the events of this chunk; a token that does not complete a character adds none."""
        self._chunks.append(chunk)
        begun = b"" if self._has_begun else self._in_progress()
        self._has_begun = True
        return begun + b"".join(self._of_chunk(chunk))

    def silence(self) -> bytes:
        """Returns what keeps the connection alive, such as an SSE comment; it has no number."""
        return self._envelope.silence

    def error(self, error: AxonError) -> bytes:
        """Returns the event that says why the stream breaks off. It repeats the last number, as it is none of the
        response's own events."""
        return self._envelope.error(error, max(self._number - 1, self._after, 0))

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
            for piece in token.details.calls if token.details else ():
                yield self._call_delta(piece)
        if chunk.terminal:
            yield self._end(ended(opened(self._job), tuple(self._chunks), at=self._job.created))

    def _reasoning_delta(self, thought: str) -> bytes:
        frames = b""
        if not isinstance(self._open, _Thoughts):
            item = _Thoughts({"item_id": thinking_id(self._job.id), "output_index": self._num_items})
            frames = self._begin(item, thinking_head(self._job.id, "in_progress"))
            frames += self._event("response.content_part.added", {**item.part, "part": thought_part("")})
            self._open = item
        self._open.texts.append(thought)
        return frames + self._event("response.reasoning_text.delta", {**self._open.part, "delta": thought})

    def _text_delta(self, text: str) -> bytes:
        frames = self._text_added()
        assert isinstance(self._open, _Text)
        known, self._pending_logprobs = self._pending_logprobs, []
        self._open.texts.append(text)
        self._open.logprobs += known
        body = {**self._open.part, "delta": text, "logprobs": known}
        return frames + self._event("response.output_text.delta", body)

    def _text_added(self) -> bytes:
        """Returns the events that begin a message item; none if one is open."""
        if isinstance(self._open, _Text):
            return b""
        item = _Text({"item_id": answer_id(self._job.id, self._num_texts), "output_index": self._num_items})
        self._num_texts += 1
        frames = self._begin(item, item.body("in_progress") | {"content": []})
        return frames + self._event("response.content_part.added", {**item.part, "part": part_body("assistant", "")})

    def _call_delta(self, piece: CallPiece) -> bytes:
        frames = b""
        self._pending_logprobs = []
        if not isinstance(self._open, _Call) or self._open.index != piece.index:
            place = {"item_id": call_item_id(self._job.id, piece.index), "output_index": self._num_items}
            item = _Call(place, piece.index, piece.name, call_id(self._job.id, 0, piece.index))
            frames = self._begin(item, item.body("in_progress"))
            self._open = item
        if not piece.arguments:
            return frames
        self._open.texts.append(piece.arguments)
        body = {**self._open.place, "delta": piece.arguments}
        return frames + self._event("response.function_call_arguments.delta", body)

    def _begin(self, item: "_Thoughts | _Text | _Call", body: dict[str, Any]) -> bytes:
        """Ends the open item and adds the next."""
        frames = self._done("completed")
        self._open = item
        self._num_items += 1
        added = {"output_index": item.place["output_index"], "item": body}
        return frames + self._event("response.output_item.added", added)

    def _done(self, status: str) -> bytes:
        """Returns the events that end the open item; none if there is none."""
        item, self._open = self._open, None
        if item is None:
            return b""
        frames, body = b"", item.body(status)
        for name, more in item.ends(body):
            frames += self._event(name, more)
        return frames + self._event(
            "response.output_item.done", {"output_index": item.place["output_index"], "item": body}
        )

    def _end(self, turn: Turn) -> bytes:
        frames, status = b"", answer_status(turn)
        if turn.state is TurnState.COMPLETED and not isinstance(self._open, _Call) and not self._num_texts:
            frames = self._done(status) + self._text_added()  # a complete answer has a message, even an empty one
        if isinstance(self._open, _Text):
            self._open.logprobs += self._pending_logprobs
        frames += self._done(status)
        name = _TERMINAL.get(status_of(turn), "response.incomplete")
        last = self._number
        end = self._event(name, {"response": response_body(turn, with_ledger=self._with_ledger)})
        if self._after <= last:
            return frames + end
        # The reader has a later number than there is: an earlier attempt had more events, which the log has lost.
        if turn.state is TurnState.COMPLETED:
            return self.error(StreamDiverged())
        return self._envelope.event(name, last, {"response": response_body(turn, with_ledger=self._with_ledger)})

    def _event(self, name: str, body: dict[str, Any]) -> bytes:
        """Takes the next number and returns its event; no bytes if the reader has seen it."""
        number = self._number
        self._number += 1
        return b"" if number <= self._after else self._envelope.event(name, number, body)
