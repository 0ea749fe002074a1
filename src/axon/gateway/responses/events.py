"""A response's events. Pure: numbered from 0 without gaps, and a function of the job and its tokens alone.

    created (queued) in_progress  item.added part.added  delta …  text.done part.done item.done  completed | …
    └───────── the job ─────────┘ └── the first text ─┘  └ each ┘ └──────────────── the end ─────────────────┘

A model's thinking is an item of its own before the answer, which ends where the answer begins.

Never of how the tokens were cut into chunks, nor of who writes them: so whoever comes back with the last number it has
seen gets the rest, byte for byte, from any gateway, as long as the response is kept.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from axon.domain.chunk import Chunk
from axon.domain.conversation import answer, answer_id
from axon.domain.job import Job
from axon.domain.turn import Turn, TurnState, ended, opened
from axon.errors import AxonError
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

_SILENCE = b": \n\n"
_encode = msgspec.json.Encoder().encode
_TERMINAL = {"completed": "response.completed", "failed": "response.failed"}
"""By the status; every other end is an answer that is not whole."""


class Writer:
    """Writes one reader's events, those past the number it has seen. It is given the stream from its first token."""

    def __init__(self, job: Job, *, after: int = -1, with_ledger: bool = False) -> None:
        self._job, self._after, self._with_ledger = job, after, with_ledger
        self._number = 0
        self._chunks: list[Chunk] = []
        self._thoughts: list[str] = []
        self._thinks = self._speaks = False
        self._unsaid: list[dict[str, Any]] = []
        """Log probabilities of tokens that have completed no character yet."""

    def opening(self) -> bytes:
        """What can be said before anything is known of the answer."""
        turn = opened(self._job)
        frames = self._event("response.created", {"response": response_body(turn, status=queued(self._job))})
        if self._job.background:
            frames += self._event("response.queued", {"response": response_body(turn, status="queued")})
        return frames + self._event("response.in_progress", {"response": response_body(turn)})

    def frames(self, chunk: Chunk) -> bytes:
        """Every event this chunk adds; a token that completes no character adds none."""
        self._chunks.append(chunk)
        return b"".join(self._of_chunk(chunk))

    def silence(self) -> bytes:
        """A comment, which has no number."""
        return _SILENCE

    def error(self, error: AxonError) -> bytes:
        """Why the stream breaks off here. It is none of the response's events: it repeats the last one's number."""
        body = {"code": error.code, "message": error.message, "param": error.param}
        return _frame("error", max(self._number - 1, self._after, 0), body)

    def _of_chunk(self, chunk: Chunk) -> Iterator[bytes]:
        for token in chunk.tokens:
            if thought := thinking_of([token]):
                yield self._think(thought)
            self._unsaid += likelihoods(token)
            if token.text:
                yield self._speak(token.text)
        if chunk.terminal:
            yield self._end(ended(opened(self._job), tuple(self._chunks), at=self._job.created))

    def _think(self, thought: str) -> bytes:
        frames = b""
        if not self._thoughts:
            self._thinks = True
            frames += self._event(
                "response.output_item.added",
                {"output_index": 0, "item": thinking_head(self._job.id, "in_progress")},
            )
            frames += self._event("response.content_part.added", {**self._thinking_place, "part": thought_part("")})
        self._thoughts.append(thought)
        return frames + self._event("response.reasoning_text.delta", {**self._thinking_place, "delta": thought})

    def _thought_out(self, status: str) -> bytes:
        """The thinking is over."""
        if not self._thinks:
            return b""
        self._thinks = False
        part = thought_part("".join(self._thoughts))
        item = {**thinking_head(self._job.id, status), "content": [part]}
        frames = self._event("response.reasoning_text.done", {**self._thinking_place, "text": part["text"]})
        frames += self._event("response.content_part.done", {**self._thinking_place, "part": part})
        return frames + self._event("response.output_item.done", {"output_index": 0, "item": item})

    def _speak(self, text: str) -> bytes:
        frames = self._thought_out("completed") + self._begin()
        known, self._unsaid = self._unsaid, []
        return frames + self._event("response.output_text.delta", {**self._place, "delta": text, "logprobs": known})

    def _begin(self) -> bytes:
        if self._speaks:
            return b""
        self._speaks = True
        item_id = answer_id(self._job.id)
        item = {"id": item_id, "type": "message", "status": "in_progress", "role": "assistant", "content": []}
        added = self._event("response.output_item.added", {"output_index": self._index, "item": item})
        return added + self._event("response.content_part.added", {**self._place, "part": part_body("assistant", "")})

    def _end(self, turn: Turn) -> bytes:
        frames = self._thought_out(answer(turn).status)
        if self._speaks or turn.state is TurnState.COMPLETED:
            frames += self._begin() + self._said(message_body(turn))
        name = _TERMINAL.get(status_of(turn), "response.incomplete")
        return frames + self._event(name, {"response": response_body(turn, with_ledger=self._with_ledger)})

    def _said(self, item: dict[str, Any]) -> bytes:
        [part] = item["content"]
        told = {"text": part["text"], "logprobs": part["logprobs"]}
        frames = self._event("response.output_text.done", {**self._place, **told})
        frames += self._event("response.content_part.done", {**self._place, "part": part})
        return frames + self._event("response.output_item.done", {"output_index": self._index, "item": item})

    @property
    def _index(self) -> int:
        """The answer's place in the output."""
        return 1 if self._thoughts else 0

    @property
    def _place(self) -> dict[str, Any]:
        return {"item_id": answer_id(self._job.id), "output_index": self._index, "content_index": 0}

    @property
    def _thinking_place(self) -> dict[str, Any]:
        return {"item_id": thinking_id(self._job.id), "output_index": 0, "content_index": 0}

    def _event(self, name: str, body: dict[str, Any]) -> bytes:
        number = self._number
        self._number += 1
        return b"" if number <= self._after else _frame(name, number, body)


def _frame(name: str, number: int, body: dict[str, Any]) -> bytes:
    data = _encode({"type": name, "sequence_number": number, **body})
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"
