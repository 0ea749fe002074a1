"""Drafts of a step: which streams have some, from which source, and what became of them. No tensors, no I/O, no clock.

Drafts out of a sequence's own text or grammar stand in the batch as it is planned. For streams that have none the draft
model may be asked: the plan has its asks, and its answers are added to the batch before the batch is computed.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from axon.engine.batch import Batch, Draw, Drawn, Span
from axon.engine.drafts import DraftAsk, Drafted
from axon.engine.schedule.acceptance import Acceptance
from axon.engine.schedule.allocation import Allocation
from axon.engine.schedule.controller import NO_DRAFTS, StepLimits
from axon.engine.schedule.draft_blocks import DraftBlocks
from axon.engine.schedule.draft_choice import Candidate, Choice, choose
from axon.engine.schedule.sequence import Sequence, Source

_FORGET = 0.98
"""Factor on what is known of all drafts of the draft model with each span that has some."""


class Drafting:
    """Gives drafts to streams and counts what became of them."""

    def __init__(self, allocation: Allocation, *, eos_ids: frozenset[int], max_draft_len: int) -> None:
        """``max_draft_len``: most tokens that the draft model attends to; 0 without one."""
        self._allocation, self._eos_ids, self._max_draft_len = allocation, eos_ids, max_draft_len
        self.num_drafted: Counter[Source] = Counter()
        """Draft tokens computed since the start."""
        self.num_accepted: Counter[Source] = Counter()
        """Draft tokens of these that were accepted."""
        self.asks: list[DraftAsk] = []
        """What the draft model is asked in the step that was planned last."""
        self._acceptance = Acceptance()
        """How often the draft model's drafts were right, over all sequences."""
        self._blocks = DraftBlocks(allocation.pool)
        self._num_reported = 0

    def plan(self, running: Iterable[tuple[Sequence, int]], limits: StepLimits, spare: int) -> list[Span]:
        """Plans the spans of running sequences, each with its number of tokens; ``spare`` tokens are left for drafts.

        Drafts take only tokens and blocks that no sequence needs.
        """
        self.asks = []
        if limits.draft_price >= NO_DRAFTS and limits.draft_costs is None:
            return [sequence.plan(share, self._eos_ids) for sequence, share in running]
        spans: list[Span] = []
        asking: list[tuple[Sequence, Span]] = []
        for sequence, share in running:
            drafts = self._look_up(sequence, spare, limits.draft_price) if limits.draft_price < NO_DRAFTS else []
            spare -= len(drafts)
            may_ask = limits.draft_costs is not None and not drafts and sequence.may_draft
            spans.append(sequence.plan(share, self._eos_ids, drafts))
            if may_ask:
                asking.append((sequence, spans[-1]))
        if asking:
            self.asks = self._ask(asking, limits)
        return spans

    def add(self, batch: Batch, drafted: Drafted, find: Callable[[Span], Sequence | None], most: int) -> Batch:
        """The batch with the draft model's drafts, at most ``most`` tokens together; ``find`` knows the sequences."""
        ends = {ask.id: ask.end for ask in self.asks}
        spans: list[Span] = []
        for span in batch.spans:
            sequence = find(span) if span.id in drafted.by_id else None
            if sequence is not None:
                self._blocks.note(sequence, ends[span.id])
                drafts = drafted.by_id[span.id][: max(0, most)]
                if sequence.matcher is not None:
                    drafts = sequence.matcher.legal(drafts)
                if drafts:
                    most -= len(drafts)
                    sequence.draft_source = Source.MODEL
                    span = sequence.replan(span, self._eos_ids, drafts)
            spans.append(span)
        return Batch(tuple(spans), batch.copies)

    def settle(self, sequence: Sequence, span: Span, drawn: list[Drawn]) -> int:
        """Takes in what was drawn behind a span's drafts; returns how many of these are accepted."""
        num_accepted, source = span.num_accepted(drawn), sequence.draft_source
        sequence.learn_drafts(num_drafted=len(span.drafts), num_accepted=num_accepted)
        self.num_drafted[source] += len(span.drafts)
        self.num_accepted[source] += num_accepted
        if source is Source.MODEL:
            self._acceptance.forget(_FORGET)
            self._acceptance.learn(num_drafted=len(span.drafts), num_accepted=num_accepted)
            if sequence.block_ids and span.admission == sequence.num_admissions:
                # The draft model has computed all of its drafts but the last.
                self._blocks.note(sequence, sequence.num_seen + min(num_accepted, len(span.drafts) - 1))
        return num_accepted

    def take_accepted(self) -> int:
        """Drafts of the draft model that were accepted since the last call."""
        reported, self._num_reported = self._num_reported, self.num_accepted[Source.MODEL]
        return self._num_reported - reported

    def _look_up(self, sequence: Sequence, spare: int, price: float) -> list[int]:
        """Draft tokens out of the sequence's text or grammar, as far as the budget and unheld blocks allow."""
        drafts = sequence.draft(price=price, most=spare)
        return drafts if not drafts or self._has_room(sequence, sequence.num_tokens + len(drafts)) else []

    def _has_room(self, sequence: Sequence, num_tokens: int) -> bool:
        """Extends the sequence's blocks to ``num_tokens`` if nobody needs the blocks."""
        num_missing = sequence.num_missing_blocks(num_tokens)
        if num_missing:
            if not self._allocation.can_extend(num_missing) or not self._allocation.may_extend(sequence, num_missing):
                return False
            self._allocation.extend(sequence, num_missing)
        return True

    def _ask(self, asking: list[tuple[Sequence, Span]], limits: StepLimits) -> list[DraftAsk]:
        """Asks of the draft model for streams without other drafts."""
        assert limits.draft_costs is not None
        if not limits.draft_costs.may_pay:
            return []
        candidates = [self._candidate(sequence) for sequence, _ in asking]
        asks: list[DraftAsk] = []
        for choice in choose(candidates, limits.draft_costs):
            sequence, span = asking[choice.index]
            if self._has_room(sequence, sequence.num_known + choice.num_drafts):
                asks.append(_ask_of(sequence, span, choice))
        return asks

    def _candidate(self, sequence: Sequence) -> Candidate:
        room = self._max_draft_len - sequence.num_known
        return Candidate(
            rate=sequence.model_acceptance.rate_from(self._acceptance.rate),
            num_unseen=self._blocks.num_unseen(sequence),
            most=min(sequence.num_left, room),  # the token of the step's own draw counts as one of it already
            num_left=sequence.num_expected,
        )


def _ask_of(sequence: Sequence, span: Span, choice: Choice) -> DraftAsk:
    first = sequence.num_seen
    return DraftAsk(
        id=sequence.id,
        first=first,
        token_ids=tuple(sequence.token_ids[first : first + choice.chunk]),
        block_ids=tuple(sequence.block_ids),
        num_drafts=choice.num_drafts,
        is_probe=choice.is_probe,
        draw=_draw_of(span.draw) if choice.num_drafts and span.draw else None,
    )


def _draw_of(draw: Draw) -> Draw:
    """The draw of a draft: the stream's own, without log probabilities and grammar, which cuts the drafts later."""
    if draw.mask is None and draw.sampling.logprobs is None:
        return draw
    return replace(draw, mask=None, sampling=replace(draw.sampling, logprobs=None))
