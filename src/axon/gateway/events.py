"""A response's events. Pure: numbered from 0 without gaps, and a function of the job and its tokens alone.

    created (queued) in_progress  item.added part.added  delta …  text.done part.done item.done  completed | …
    └───────── the job ─────────┘ └─ the first token ─┘  └ each ┘ └──────────────── the end ─────────────────┘

Never of how the tokens were cut into chunks, nor of who writes them: so whoever comes back with the last number it has
seen gets the rest, byte for byte, from any gateway, as long as the response is kept.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from axon.domain.chunk import Chunk, Token
from axon.domain.conversation import answer_id
from axon.domain.job import Job
from axon.domain.turn import Turn, TurnState, ended, opened
from axon.errors import AxonError
from axon.gateway.items import item_body, part_body
from axon.gateway.response_object import output, queued, response_body, status_of

SILENCE = b": \n\n"
"""Says nothing and has no number: nobody in between takes the stream for dead."""
_encode = msgspec.json.Encoder().encode
_TERMINAL = {"completed": "response.completed", "failed": "response.failed"}
"""By the status; every other end is an answer that is not whole."""


class Writer:
    """Writes one reader's events, those past the number it has seen. It is given the stream from its first token."""

    def __init__(self, job: Job, *, after: int = -1) -> None:
        self._job, self._after = job, after
        self._number = 0
        self._item_id = answer_id(job.id)
        self._place = {"item_id": self._item_id, "output_index": 0, "content_index": 0}
        self._chunks: list[Chunk] = []
        self._begun = False

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

    def error(self, error: AxonError) -> bytes:
        """Why the stream breaks off here. It is none of the response's events: it repeats the last one's number."""
        body = {"code": error.code, "message": error.message, "param": error.param}
        return _frame("error", max(self._number - 1, self._after, 0), body)

    def _of_chunk(self, chunk: Chunk) -> Iterator[bytes]:
        for token in chunk.tokens:
            if not self._begun:
                yield self._begin()
            if token.text:
                yield self._delta(token)
        if chunk.terminal:
            yield self._end(ended(opened(self._job), tuple(self._chunks), at=self._job.created))

    def _begin(self) -> bytes:
        self._begun = True
        item = {"id": self._item_id, "type": "message", "status": "in_progress", "role": "assistant", "content": []}
        added = self._event("response.output_item.added", {"output_index": 0, "item": item})
        return added + self._event("response.content_part.added", {**self._place, "part": part_body("assistant", "")})

    def _delta(self, token: Token) -> bytes:
        return self._event("response.output_text.delta", {**self._place, "delta": token.text, "logprobs": []})

    def _end(self, turn: Turn) -> bytes:
        frames = b"" if self._begun or turn.state is not TurnState.COMPLETED else self._begin()
        for item in output(turn):
            body = item_body(item)
            frames += self._event("response.output_text.done", {**self._place, "text": item.text, "logprobs": []})
            frames += self._event("response.content_part.done", {**self._place, "part": body["content"][0]})
            frames += self._event("response.output_item.done", {"output_index": 0, "item": body})
        name = _TERMINAL.get(status_of(turn), "response.incomplete")
        return frames + self._event(name, {"response": response_body(turn)})

    def _event(self, name: str, body: dict[str, Any]) -> bytes:
        number = self._number
        self._number += 1
        return b"" if number <= self._after else _frame(name, number, body)


def _frame(name: str, number: int, body: dict[str, Any]) -> bytes:
    data = _encode({"type": name, "sequence_number": number, **body})
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"
