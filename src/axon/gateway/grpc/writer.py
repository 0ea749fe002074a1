"""Encodes a stream's tokens as the messages of Generate. No I/O, no clock.

What the messages of a call say together depends on the tokens alone, not on how the log cut them into chunks.
"""

from collections.abc import Iterable, Sequence

from axon.domain.billing.usage import Usage
from axon.domain.content.tool_call import call_id
from axon.domain.job import Job
from axon.domain.log.chunk import Chunk, Token
from axon.domain.tenants.tenant import Tier
from axon.errors import AxonError
from axon.gateway.offers.wait import Wait
from axon.gateway.openai.calls import pieces_of
from axon.gateway.openai.frames import stopped_by
from axon.gateway.openai.outcome import failure
from axon.gateway.openai.shape import text_of, thinking_of
from axon.v1 import axon_pb2 as pb


class Writer:
    """Encodes the messages of one reader, from its position on, and remembers why they broke off.

    A message that has nothing to say is not sent; the next one has its seq. So a client that has read a message has
    every token up to its seq, of all choices.
    """

    def __init__(self, job: Job, *, after: int = 0, wait: Wait | None = None) -> None:
        self._job, self._seq, self._wait = job, after, wait
        self._cached = self._reasoned = 0
        self._finished: set[int] = set()
        self.problem: AxonError | None = None
        """The error that ends the stream."""

    def opening(self) -> bytes:
        """Returns the message that comes before the first token: the turn's id, and how it waits."""
        job = self._job
        begun = pb.Begun(
            id=job.id,
            model=job.reply.model or job.deployment,
            version=job.version,
            created=job.created,
            service_tier=Tier.of(job.priority).value,
            fallback=job.fallback,
        )
        queue = None if self._wait is None else queue_of(self._wait)
        return pb.GenerateResponse(seq=self._seq, begun=begun, queue=queue).SerializeToString()

    def frames(self, chunk: Chunk) -> bytes:
        """Returns the message of this chunk; no bytes if it has nothing to say."""
        self._seq = max(self._seq, chunk.last)
        self._cached, self._reasoned = max(self._cached, chunk.cached), max(self._reasoned, chunk.reasoned)
        said = pb.GenerateResponse(seq=self._seq)
        said.deltas.extend(self._deltas(chunk.tokens))
        if error := failure(chunk, self._job.reply):
            self.problem = error
            return said.SerializeToString() if said.deltas else b""
        for end in chunk.ends:
            if end.choice not in self._finished:
                self._finished.add(end.choice)
                said.finishes.add(choice=end.choice, reason=end.reason)
        if chunk.terminal:
            said.end.CopyFrom(pb.End(usage=usage_of(self._usage()), stopped=stopped_by(chunk)))
        return said.SerializeToString() if said.deltas or said.finishes or chunk.terminal else b""

    def queued(self, wait: Wait) -> bytes:
        """Returns a message that says how the turn waits."""
        return pb.GenerateResponse(seq=self._seq, queue=queue_of(wait)).SerializeToString()

    def silence(self) -> bytes:
        """Returns a message with the seq alone, so that no proxy closes a stream that pauses."""
        return pb.GenerateResponse(seq=self._seq).SerializeToString()

    def error(self, error: AxonError) -> bytes:
        """Remembers the error, which the call's status tells."""
        self.problem = error
        return b""

    def _deltas(self, tokens: Iterable[Token]) -> list[pb.Delta]:
        """Returns one part for each choice that has something to say."""
        by_choice: dict[int, list[Token]] = {}
        for token in tokens:
            by_choice.setdefault(token.choice, []).append(token)
        found = [self._delta(choice, said) for choice, said in by_choice.items()]
        return [each for each in found if each.text or each.reasoning or each.tool_calls or each.logprobs]

    def _delta(self, choice: int, tokens: Sequence[Token]) -> pb.Delta:
        return pb.Delta(
            choice=choice,
            text=text_of(tokens),
            reasoning=thinking_of(tokens),
            tool_calls=[
                pb.CallDelta(
                    index=piece.index,
                    id=call_id(self._job.id, choice, piece.index) if piece.name else "",
                    name=piece.name,
                    arguments=piece.arguments,
                )
                for piece in pieces_of(tokens)
            ],
            logprobs=[scored for token in tokens if (scored := _scored(token)) is not None],
        )

    def _usage(self) -> Usage:
        return Usage(
            prompt_tokens=self._job.num_prompt_tokens,
            cached_tokens=self._cached,
            output_tokens=self._seq,
            reasoning_tokens=self._reasoned,
        )


def usage_of(usage: Usage) -> pb.Usage:
    """Returns the numbers of tokens as a message."""
    return pb.Usage(
        prompt_tokens=usage.prompt_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        reasoning_tokens=usage.reasoning_tokens,
    )


def queue_of(wait: Wait) -> pb.Queue:
    """Returns how a turn waits as a message."""
    return pb.Queue(state=wait.state.value, position=wait.position, expected_wait_s=wait.expected_s)


def _scored(token: Token) -> pb.TokenLogprob | None:
    details = token.details
    if details is None or details.logprob is None:
        return None
    top = [pb.TokenLogprob.Likely(token=data, logprob=logprob) for data, logprob in details.top or ()]
    return pb.TokenLogprob(token=details.data, logprob=details.logprob, top=top)
