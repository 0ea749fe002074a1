"""Encodes a stream's tokens as the server-sent events of chat and completions. No I/O, no clock.

The text of the frames depends on the tokens alone, not on how the log cut them into chunks. A frame is a bare
``data: `` line, because some clients lose every token after a comment, an ``id`` or an ``event`` line; a client that
asks for ids gets them.
"""

from collections.abc import Container, Iterator, Sequence
from typing import Any

import msgspec

from axon.domain.billing.cost import Cost
from axon.domain.billing.ledger import Ledger
from axon.domain.billing.usage import Usage
from axon.domain.job import Job
from axon.domain.log.chunk import Chunk, End, Token
from axon.domain.reply import ChatReply, CompletionReply
from axon.domain.tenants.tenant import Tier
from axon.domain.turn import Turn
from axon.errors import AxonError, BudgetSpent
from axon.gateway.http.errors import body_of
from axon.gateway.offers.wait import Wait
from axon.gateway.openai import best_of
from axon.gateway.openai.outcome import failure
from axon.gateway.openai.shape import shape_of, text_of
from axon.gateway.turn.waiting import wait_body

DONE = b"data: [DONE]\n\n"
_MARK = Token(0, 0, "\x00")
"""Stands for the text in a template of a frame: no tokenizer makes a text of this character alone."""
_encode = msgspec.json.Encoder().encode


def stopped_by(last: Chunk | Turn) -> str:
    """Returns what cut a complete answer short other than its length: ``budget`` or an empty string."""
    return "budget" if last.code == BudgetSpent.code else ""


def error_frame(error: AxonError, ledger: Ledger | None = None, cost: Cost | None = None) -> bytes:
    """Returns the frames that end a stream with an error."""
    more = {"axon": {"ledger": ledger_body(ledger, cost)}} if ledger else {}
    return b"data: " + _encode(body_of(error) | more) + b"\n\n" + DONE


def usage_body(usage: Usage) -> dict[str, Any]:
    """Returns the numbers of tokens as OpenAI's ``usage`` object."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def ledger_body(ledger: Ledger | None, cost: Cost | None) -> dict[str, Any] | None:
    """Returns a turn's tokens and times, which show why it was slow, and its cost where it has a price."""
    if ledger is None:
        return None
    priced = {"price": cost.price, "cost": cost.amount.shown()} if cost else {}
    return {
        "queued_tokens": ledger.queued,
        "prefilled_tokens": ledger.prefilled,
        "cached_tokens": ledger.cached,
        "emitted_tokens": ledger.emitted,
        "replayed_tokens": ledger.replayed,
        "wasted_tokens": ledger.wasted,
        "billed_tokens": ledger.billed,
        "attempts": ledger.attempts,
        "queue_s": round(ledger.queue_s, 4),
        "start_s": round(ledger.start_s, 4),
        "prefill_s": round(ledger.prefill_s, 4),
        "decode_s": round(ledger.decode_s, 4),
        "replay_s": round(ledger.replay_s, 4),
        "restarts": ledger.restarts,
        "restart_s": round(ledger.restart_s, 4),
        "waited_s": round(ledger.waited_s, 4),
        "paced_s": round(ledger.paced_s, 4),
        **priced,
    }


def told_body(job: Job) -> dict[str, Any]:
    """Returns the move of the job's session to another version, and the deployment if it is a fallback of the asked
    one, for the field ``axon``: usually nothing."""
    moved = job.moved
    body: dict[str, Any] = {"fallback": job.fallback} if job.fallback else {}
    return body | {"moved": {"from": moved.old, "to": moved.new, "reason": moved.reason}} if moved else body


def more_of(job: Job, last: Chunk | Turn, *, cost: Cost | None, with_ledger: bool) -> dict[str, Any]:
    """Returns the contents of the field ``axon`` of a whole answer, which OpenAI's API does not have: usually none."""
    more: dict[str, Any] = {"stopped": stopped} if (stopped := stopped_by(last)) else {}
    more |= told_body(job)
    if with_ledger:
        more["ledger"] = ledger_body(last.ledger, cost)
    return more


class Writer:
    """Encodes the frames of one reader, from its position on.

    A frame holds consecutive tokens of one choice and the seq of the last of them. A client that has read it has every
    token up to that seq, of all choices.
    """

    def __init__(
        self,
        job: Job,
        *,
        after: int = 0,
        with_ids: bool = False,
        with_ledger: bool = False,
        wait: Wait | None = None,
    ) -> None:
        self._job = job
        self._with_ledger = with_ledger
        self._with_ids = with_ids
        self._seq = after
        self._cached = self._reasoned = 0
        self._shape = shape_of(job)
        reply = job.reply if isinstance(job.reply, ChatReply | CompletionReply) else ChatReply()
        self._include_usage, self._continuous_usage = reply.include_usage, reply.continuous_usage
        # Tokens 1 to n of a stream are the first tokens of its n choices: those up to ``after`` were opened before.
        self._unopened = set(range(after, job.choices)) if self._shape.opens() else set()
        self._untold = {} if after or self._unopened else told_body(job)
        """What the first frame has to tell, where no frame opens a choice."""
        self._closed: set[int] = set()
        self._head = _head(job, self._shape.chunk_object)
        self._template: tuple[bytes, bytes] | None = None
        self._can_be_plain = job.choices == 1 and not (with_ids or self._continuous_usage)
        self._can_be_plain &= self._shape.speaks([_MARK])
        self._wait = wait
        """How the turn waits, as last heard; None once it runs."""

    def opening(self) -> bytes:
        """Returns no bytes: nothing is sent before the first token."""
        return b""

    def error(self, error: AxonError) -> bytes:
        """Returns the frames that end the stream with this error."""
        return error_frame(error)

    def queued(self, wait: Wait) -> bytes:
        """Returns no bytes: many clients take the first frame for the first token. A keep-alive frame tells it."""
        self._wait = wait
        return b""

    def frames(self, chunk: Chunk) -> bytes:
        """Returns the frames of this chunk; no bytes while its tokens do not complete a character."""
        self._wait = None
        self._cached, self._reasoned = max(self._cached, chunk.cached), max(self._reasoned, chunk.reasoned)
        if self._can_be_plain and not (self._unopened or self._untold) and _is_plain(chunk):
            return self._plain(chunk)
        bodies = [body for body in self._choices(chunk) if body is not None]
        if bodies and self._untold:
            bodies[0]["axon"] |= self._untold
            self._untold = {}
        if error := failure(chunk, self._job.reply):
            ledger = chunk.ledger if self._with_ledger else None
            return b"".join(map(self._line, bodies)) + error_frame(error, ledger, self._cost())
        if not chunk.terminal:
            return b"".join(map(self._line, bodies))
        if self._include_usage:
            bodies.append(self._body({"choices": [], "usage": usage_body(self._usage())}))
        if bodies:
            if stopped := stopped_by(chunk):
                bodies[-1]["axon"]["stopped"] = stopped
            bodies[-1]["axon"] |= told_body(self._job)
            bodies[-1]["axon"]["end"] = True  # tells the client that this is the end, not a broken connection
            if self._with_ledger:
                bodies[-1]["axon"]["ledger"] = ledger_body(chunk.ledger, self._cost())
        return b"".join(map(self._line, bodies)) + DONE

    def silence(self) -> bytes:
        """Returns a keep-alive frame without text, so that no proxy closes a stream that pauses. It says how a turn
        waits that no worker has taken."""
        body = self._frame(0, self._shape.empty)
        if self._wait is not None:
            body["axon"]["queue"] = wait_body(self._wait)
        return self._line(body)

    def _plain(self, chunk: Chunk) -> bytes:
        """Returns the same frame as for any other chunk, with the text pasted into a template: most frames differ in
        their text and seq alone."""
        self._seq, text = chunk.last, text_of(chunk.tokens)
        if not text:
            return b""
        if self._template is None:
            self._template = self._make_template()
        return b"%b%b%b%d}}\n\n" % (self._template[0], _encode(text), self._template[1], self._seq)

    def _make_template(self) -> tuple[bytes, bytes]:
        """Returns what comes before the text of a frame, and what comes between the text and the seq."""
        line = self._line(self._frame(0, self._shape.delta(0, [_MARK], first=False)))
        before, after = line.split(_encode(_MARK.text))
        return before, after.removesuffix(b"%d}}\n\n" % self._seq)

    def _choices(self, chunk: Chunk) -> Iterator[dict[str, Any] | None]:
        """Yields the bodies of the chunk's frames in the order of their tokens, each choice's end after its last."""
        ends = _ends_by_seq(chunk)
        yield from map(self._close, ends.get(chunk.first - 1, ()))
        for seq, tokens in _runs(chunk, ends):
            self._seq = seq
            yield self._run(tokens[0].choice, tokens)
            yield from map(self._close, ends.get(seq, ()))

    def _run(self, choice: int, tokens: Sequence[Token]) -> dict[str, Any] | None:
        """Returns the body of a frame for consecutive tokens of one choice; None if there is nothing to send."""
        found = self._shape.logprobs(choice, tokens)
        first = choice in self._unopened
        if not first and found is None and not self._shape.speaks(tokens):
            return None
        self._unopened.discard(choice)
        body = self._frame(choice, self._shape.delta(choice, tokens, first=first), found)
        if first:
            body["axon"] |= told_body(self._job)
        return body

    def _close(self, end: End) -> dict[str, Any] | None:
        """Returns the body of the frame that says how a choice ended; None if it was sent before."""
        if end.choice in self._closed:
            return None
        self._closed.add(end.choice)
        return self._frame(end.choice, self._shape.empty, finish=end.reason)

    def _frame(self, choice: int, delta: Any, found: Any = None, finish: str | None = None) -> dict[str, Any]:
        shown = {"index": choice, self._shape.field: delta, "logprobs": found, "finish_reason": finish}
        body: dict[str, Any] = {"choices": [shown]}
        if self._include_usage:
            body["usage"] = usage_body(self._usage()) if self._continuous_usage else None
        return self._body(body)

    def _usage(self) -> Usage:
        return Usage(
            prompt_tokens=self._job.num_prompt_tokens,
            cached_tokens=self._cached,
            output_tokens=self._seq,
            reasoning_tokens=self._reasoned,
        )

    def _cost(self) -> Cost | None:
        return self._job.cost_of(self._usage())

    def _body(self, body: dict[str, Any]) -> dict[str, Any]:
        return {**self._head, **body, "axon": {"seq": self._seq}}

    def _line(self, body: dict[str, Any]) -> bytes:
        head = b"id: %d\n" % body["axon"]["seq"] if self._with_ids else b""
        return head + b"data: " + _encode(body) + b"\n\n"


def whole(job: Job, chunks: Sequence[Chunk], *, with_ledger: bool = False) -> dict[str, Any]:
    """Returns the answer as one object, for a client that does not stream."""
    shape = shape_of(job)
    said: list[list[Token]] = [[] for _ in range(job.choices)]
    for chunk in chunks:
        for token in chunk.tokens:
            said[token.choice].append(token)
    reasons = {end.choice: end.reason for chunk in chunks for end in chunk.ends}
    usage = Usage(
        prompt_tokens=job.num_prompt_tokens,
        cached_tokens=max((chunk.cached for chunk in chunks), default=0),
        output_tokens=sum(map(len, said)),
        reasoning_tokens=max((chunk.reasoned for chunk in chunks), default=0),
    )
    more = more_of(job, chunks[-1], cost=job.cost_of(usage), with_ledger=with_ledger)
    return {
        **_head(job, shape.whole_object),
        "choices": [
            {"index": index, **shape.whole(choice, said[choice]), "finish_reason": reasons.get(choice, "stop")}
            for index, choice in enumerate(best_of.chosen(job, said))
        ],
        **shape.more(said[0]),
        "usage": usage_body(usage),
        **({"axon": more} if more else {}),
    }


def _head(job: Job, kind: str) -> dict[str, Any]:
    """Returns the fields that every chunk and every whole answer begin with."""
    return {
        "id": job.id,
        "object": kind,
        "created": int(job.created),
        "model": job.reply.model or job.deployment,
        "service_tier": Tier.of(job.priority).value,
        "system_fingerprint": job.pinned,
    }


def _is_plain(chunk: Chunk) -> bool:
    """Whether the chunk has nothing but text, and nothing that ends."""
    return not (chunk.terminal or chunk.ends) and all(token.details is None for token in chunk.tokens)


def _ends_by_seq(chunk: Chunk) -> dict[int, list[End]]:
    """Groups the choices' ends by the seq of the token that they follow.

    An end that an earlier chunk had already counts as coming just before this chunk's first token.
    """
    ends: dict[int, list[End]] = {}
    for end in chunk.ends:
        ends.setdefault(max(chunk.last if end.at is None else end.at, chunk.first - 1), []).append(end)
    return ends


def _runs(chunk: Chunk, ends: Container[int]) -> Iterator[tuple[int, Sequence[Token]]]:
    """Yields runs of consecutive tokens of one choice, each with the seq of its last token; an end cuts a run."""
    start = 0
    for stop, token in enumerate(chunk.tokens, start=1):
        next_token = chunk.tokens[stop] if stop < len(chunk.tokens) else None
        seq = chunk.first + stop - 1
        if next_token is None or next_token.choice != token.choice or seq in ends:
            yield seq, chunk.tokens[start:stop]
            start = stop
