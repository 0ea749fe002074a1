"""A small model that drafts the next tokens of streams, one batch after the other. Knows no scheduler.

It draws each draft by the stream's own rule and random number: a draft model that is sure of the same tokens as the
target drafts what the target will draw, at any temperature. What it drafts changes no token, only the time of the step.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from axon.domain.sampling import Sampling
from axon.engine.batch import PLACEHOLDER, Batch, Draw, Span
from axon.engine.drafts import NEAR, DraftAsk, Drafted, DraftRound
from axon.engine.phases import within
from axon.engine.runner import Flight, Launcher, Runner

_MOST_IN_FLIGHT = 2
"""Batches that a launcher takes on before the first of them is waited for."""


class DraftModel:
    """Runs batches of the draft model. It keeps nothing of a stream but the KV in its blocks."""

    keeps_drafts = True

    def __init__(
        self,
        runner: Runner,
        *,
        vocab_size: int,
        max_len: int,
        launcher: Launcher | None = None,
        later: Callable[[], bool] | None = None,
    ) -> None:
        """``vocab_size`` is the smaller one of the two models': no id beyond it is given to either. With a ``launcher``
        a batch is launched before the drafts of the one before it are known."""
        self._runner, self._vocab_size, self._launcher = runner, vocab_size, launcher
        self.later = later
        """Does a piece of what can wait, if there is any; see ``Backend``."""
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
        if self._launcher is not None and not any(_penalises(ask) for ask in known.values()):
            with within("draft"):
                return self._draft_ahead(self._launcher, known)
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

    def _draft_ahead(self, launcher: Launcher, known: Mapping[str, DraftAsk]) -> Drafted:
        """Launches all batches, each behind the one whose drafts it computes, and then waits for them."""
        started_at = time.perf_counter()
        launched: list[tuple[list[Span], Flight]] = []
        spans = [_first_span(ask) for ask in known.values()]
        while spans:
            if len(launched) >= _MOST_IN_FLIGHT:
                launched[-_MOST_IN_FLIGHT][1].land()
            launched.append((spans, launcher.launch(Batch(tuple(spans)))))
            drawn = [span for span in spans if span.draw is not None]
            spans = [_next_span(span, PLACEHOLDER) for span in drawn if len(launched) < known[span.id].num_drafts]
        by_id: dict[str, list[int]] = {id: [] for id in known}
        for number, (spans, flight) in enumerate(launched):
            for span, each in zip((span for span in spans if span.draw is not None), flight.land(), strict=True):
                # Behind an id that the target does not have nothing counts.
                if each.token < self._vocab_size and len(by_id[span.id]) == number:
                    by_id[span.id].append(each.token)
        each_s = (time.perf_counter() - started_at) / max(1, len(launched))
        rounds = tuple(self._round_of(spans, each_s) for spans, _ in launched)
        return Drafted(by_id=by_id, rounds=rounds, is_probe=all(ask.is_probe for ask in known.values()))

    def _run(self, batch: Batch, rounds: list[DraftRound]) -> list[int]:
        started_at = time.perf_counter()
        drawn = self._runner.run(batch)
        seconds = time.perf_counter() - started_at
        rounds.append(self._round_of(batch.spans, seconds))
        return [each.token for each in drawn]

    def _round_of(self, spans: Sequence[Span], seconds: float) -> DraftRound:
        return DraftRound(
            num_tokens=sum(len(span.token_ids) for span in spans),
            num_attended=sum(len(span.token_ids) * (span.first + span.end) // 2 for span in spans),
            seconds=seconds,
            is_chunk=self._launcher is not None and any(len(span.token_ids) > NEAR for span in spans),
        )


def _penalises(ask: DraftAsk) -> bool:
    """Whether each draft depends on those before it in more than the model, so that these must be known."""
    return ask.draw is not None and ask.draw.sampling.penalises_output


def _first_span(ask: DraftAsk) -> Span:
    return Span(
        id=ask.id,
        first=ask.first,
        token_ids=ask.token_ids,
        block_ids=ask.block_ids,
        draw=ask.draw,
        arrival=ask.arrival,
        admission=ask.admission,
    )


def _next_span(span: Span, token: int) -> Span:
    """The span of a draft, whose draw gives the draft behind it."""
    assert span.draw is not None
    draw = span.draw
    output_ids = (*draw.output_ids, token) if draw.sampling.penalises_output else ()
    draw = replace(draw, position=draw.position + 1, output_ids=output_ids)
    return replace(span, first=span.end, token_ids=(token,), draw=draw)
