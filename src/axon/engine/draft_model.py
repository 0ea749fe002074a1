"""A small model that drafts the next tokens of streams, one batch after the other. Knows no scheduler.

It draws each draft by the stream's own rule and random number: a draft model that is sure of the same tokens as the
target drafts what the target will draw, at any temperature. What it drafts changes no token, only the time of the step.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

from axon.domain.sampling import Sampling
from axon.engine.batch import Batch, Draw, Span
from axon.engine.drafts import DraftAsk, Drafted, DraftRound
from axon.engine.phases import within
from axon.engine.runner import Runner


class DraftModel:
    """Runs batches of the draft model. It keeps nothing of a stream but the KV in its blocks."""

    def __init__(self, runner: Runner, *, vocab_size: int, max_len: int) -> None:
        """``vocab_size`` is the smaller one of the two models': no id beyond it is given to either."""
        self._runner, self._vocab_size = runner, vocab_size
        self.max_len = max_len
        """Most tokens of a stream that the draft model can attend to."""

    def warm_up(self) -> None:
        """Computes a token for nobody, before any stream: the first batches read the weights from disk."""
        draw = Draw(sampling=Sampling(max_tokens=1, temperature=0.0), seed=0, choice=0, position=0)
        for _ in range(2):
            self._runner.run(Batch((Span(id="", first=0, token_ids=(0,), block_ids=(0,), draw=draw),)))

    def draft(self, asks: Sequence[DraftAsk]) -> Drafted:
        """Computes the asked tokens in a first batch, and in each batch after it the drafts of the one before."""
        known = {ask.id: ask for ask in asks if max(ask.token_ids) < self._vocab_size}
        by_id: dict[str, list[int]] = {id: [] for id in known}
        rounds: list[DraftRound] = []
        spans = [_first_span(ask) for ask in known.values()]
        with within("draft"):
            while spans:
                drawn = self._run(Batch(tuple(spans)), rounds)
                going: list[Span] = []
                for span, token in zip((span for span in spans if span.draw is not None), drawn, strict=True):
                    drafts = by_id[span.id]
                    if token < self._vocab_size:
                        drafts.append(token)
                        if len(drafts) < known[span.id].num_drafts:
                            going.append(_next_span(span, token))
                spans = going
        is_probe = all(ask.is_probe for ask in known.values())
        return Drafted(by_id=by_id, rounds=tuple(rounds), is_probe=is_probe)

    def _run(self, batch: Batch, rounds: list[DraftRound]) -> list[int]:
        started_at = time.perf_counter()
        drawn = self._runner.run(batch)
        seconds = time.perf_counter() - started_at
        num_attended = sum(len(span.token_ids) * (span.first + span.end) // 2 for span in batch.spans)
        rounds.append(DraftRound(num_tokens=batch.num_tokens, num_attended=num_attended, seconds=seconds))
        return [each.token for each in drawn]


def _first_span(ask: DraftAsk) -> Span:
    return Span(id=ask.id, first=ask.first, token_ids=ask.token_ids, block_ids=ask.block_ids, draw=ask.draw)


def _next_span(span: Span, token: int) -> Span:
    """The span of a draft, whose draw gives the draft behind it."""
    assert span.draw is not None
    draw = span.draw
    output_ids = (*draw.output_ids, token) if draw.sampling.penalises_output else ()
    draw = replace(draw, position=draw.position + 1, output_ids=output_ids)
    return Span(id=span.id, first=span.end, token_ids=(token,), block_ids=span.block_ids, draw=draw)
