"""Encodes a stream as the server-sent events of Anthropic's messages. No I/O, no clock.

    message_start  (block_start  block_delta …  block_stop) …  message_delta  message_stop
    └─ the job ──┘  └─────────── the tokens ─────────────┘     └──────── the end ───────┘

The last event of a token has its seq (``axon.seq``), and ``message_delta`` has the number after the last token's: it
ends the answer, and the last token's own event has that seq already. Events depend on the job and its tokens alone, not
on how the log cut the tokens into chunks. So a client that comes back with the last number that it has seen gets
exactly the rest, from any gateway.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from axon.domain.billing.usage import Usage
from axon.domain.job import Job
from axon.domain.log.chunk import Chunk, Token
from axon.errors import AxonError, StreamDiverged
from axon.gateway.anthropic.blocks import Blocks, Kind, Step, Verb, head_body, stop_reason
from axon.gateway.anthropic.message import head_body as message_head
from axon.gateway.anthropic.message import hides_thinking, usage_body
from axon.gateway.http.anthropic import body_of
from axon.gateway.offers.wait import Wait
from axon.gateway.openai.frames import more_of, told_body
from axon.gateway.openai.outcome import failure
from axon.gateway.turn.waiting import wait_body

_encode = msgspec.json.Encoder().encode
_DELTA = {
    Kind.THINKING: ("thinking_delta", "thinking"),
    Kind.TEXT: ("text_delta", "text"),
    Kind.TOOL_USE: ("input_json_delta", "partial_json"),
}
"""The type of a block's deltas, and the field that holds the text."""


class Writer:
    """Encodes one reader's events past number ``after``. It must be given the stream from its first token on."""

    def __init__(
        self,
        job: Job,
        *,
        after: int = 0,
        with_ids: bool = False,
        with_ledger: bool = False,
        wait: Wait | None = None,
        request_id: str = "",
    ) -> None:
        """``wait`` says how the turn waits now."""
        self._job, self._after = job, after
        self._with_ids, self._with_ledger, self._request_id = with_ids, with_ledger, request_id
        self._wait = wait
        """How the turn waits, as last heard; None once it runs."""
        self._blocks = Blocks()
        self._hides_thinking = hides_thinking(job)
        self._seq = self._cached = self._reasoned = 0
        self._last: Token | None = None
        self._reason = "stop"

    def opening(self) -> bytes:
        """Returns the event before the first token; none for a reader that has tokens."""
        if self._after:
            return b""
        told = told_body(self._job)
        message = message_head(self._job) | ({"axon": told} if told else {})
        return self._event("message_start", {"message": message})

    def queued(self, wait: Wait) -> bytes:
        """Returns a ping that says how the turn waits now."""
        self._wait = wait
        return self.silence()

    def silence(self) -> bytes:
        """Returns a ping, which keeps the connection alive. It says how a turn waits that no worker has taken."""
        return self._event("ping", {"axon": {"queue": wait_body(self._wait)}} if self._wait is not None else {})

    def error(self, error: AxonError) -> bytes:
        """Returns the event that says why the stream breaks off."""
        return b"event: error\ndata: " + _encode(body_of(error, self._request_id)) + b"\n\n"

    def frames(self, chunk: Chunk) -> bytes:
        """Returns the events of this chunk; a token that does not complete a character adds none."""
        self._wait = None
        self._cached, self._reasoned = max(self._cached, chunk.cached), max(self._reasoned, chunk.reasoned)
        found = b"".join([self._of_token(token) for token in chunk.tokens])
        for end in chunk.ends:
            self._reason = end.reason
        return found + self._end(chunk) if chunk.terminal else found

    def _of_token(self, token: Token) -> bytes:
        """Returns the events of the next token; none if the reader has seen it."""
        self._seq, self._last = self._seq + 1, token
        bodies = [body for step in self._blocks.add(token) for body in self._of_step(step)]
        if not bodies or self._seq <= self._after:
            return b""
        name, body = bodies[-1]
        bodies[-1] = name, {**body, "axon": {"seq": self._seq}}
        return b"".join([self._event(name, body) for name, body in bodies])

    def _of_step(self, step: Step) -> Iterator[tuple[str, dict[str, Any]]]:
        block = step.block
        if step.verb is Verb.START:
            yield "content_block_start", {"index": block.index, "content_block": head_body(block, self._job.id)}
        elif step.verb is Verb.DELTA and not (block.kind is Kind.THINKING and self._hides_thinking):
            kind, name = _DELTA[block.kind]
            yield "content_block_delta", {"index": block.index, "delta": {"type": kind, name: step.text}}
        elif step.verb is Verb.STOP:
            if block.kind is Kind.THINKING:
                signature = {"type": "signature_delta", "signature": block.signature}
                yield "content_block_delta", {"index": block.index, "delta": signature}
            yield "content_block_stop", {"index": block.index}

    def _end(self, chunk: Chunk) -> bytes:
        """Returns the events after the last token."""
        if error := failure(chunk, self._job.reply):
            return self.error(error)
        number = self._seq + 1
        if self._after > number:
            # The reader has seen more tokens than there are: of an earlier attempt, which the log has lost.
            return self.error(StreamDiverged())
        if self._after == number:
            return self._event("message_stop", {})
        closing = [body for step in self._blocks.end() for body in self._of_step(step)]
        reason, sequence = stop_reason(self._reason, self._last)
        usage = Usage(
            prompt_tokens=self._job.num_prompt_tokens,
            cached_tokens=self._cached,
            output_tokens=self._seq,
            reasoning_tokens=self._reasoned,
        )
        more = more_of(self._job, chunk, cost=self._job.cost_of(usage), with_ledger=self._with_ledger)
        delta = {
            "delta": {"stop_reason": reason, "stop_sequence": sequence},
            "usage": usage_body(self._job, usage),
            "axon": {"seq": number, **more},
        }
        bodies = [*closing, ("message_delta", delta), ("message_stop", {})]
        return b"".join([self._event(name, body) for name, body in bodies])

    def _event(self, name: str, body: dict[str, Any]) -> bytes:
        seq = body.get("axon", {}).get("seq") if self._with_ids else None
        head = b"" if seq is None else b"id: %d\n" % seq
        return head + b"event: " + name.encode() + b"\ndata: " + _encode({"type": name, **body}) + b"\n\n"
