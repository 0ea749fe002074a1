"""Drafts of a step: which streams have some, from which source, and what became of them. No tensors, no I/O, no clock.

Drafts out of a sequence's own text or grammar stand in the batch as it is planned. For streams that have none the draft
model may be asked: the plan has its asks, and its answers are added to the batch before the batch is computed.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from axon.engine.batch import Batch, Draw, Drawn, Span
from axon.engine.drafts import DraftAsk, Drafted
from axon.engine.schedule.allocation import Allocation
from axon.engine.schedule.draft import MOST, num_worth
from axon.engine.schedule.draft_blocks import DraftBlocks
from axon.engine.schedule.limits.acceptance import Acceptance
from axon.engine.schedule.limits.controller import NO_DRAFTS, ExpectedDrafts, StepLimits
from axon.engine.schedule.limits.draft_choice import Candidate, Choice, DraftCosts, choose, expected
from axon.engine.schedule.sequence import Sequence, Source

_FORGET = 0.98
"""Factor on what is known of all drafts of the draft model with each span that has some."""
_LONG_MATCH = 8
"""Tokens that must have occurred before in a row for their successors to be drafted in place of a head's guesses."""


class Drafting:
    """Gives drafts to streams and counts what became of them."""

    def __init__(
        self, allocation: Allocation, *, eos_ids: frozenset[int], max_draft_len: int, has_head: bool = False
    ) -> None:
        """``max_draft_len``: most tokens that the draft model attends to; 0 without one. ``has_head``: it is a head of
        the model, which computes its drafts again once they are accepted."""
        self._has_head = has_head
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
        self._num_reported = self._num_looked_up = 0
        self._most = 0
        """Draft tokens that the step planned last may still take on."""

    def plan(self, running: Iterable[tuple[Sequence, int]], limits: StepLimits, spare: int) -> list[Span]:
        """Plans the spans of running sequences, each with its number of tokens; ``spare`` tokens are left for drafts.

        Drafts take only tokens and blocks that no sequence needs.
        """
        self.asks = []
        spare = min(spare, limits.max_drafts)
        if limits.draft_price >= NO_DRAFTS and limits.draft_costs is None:
            return [sequence.plan(share, self._eos_ids) for sequence, share in running]
        spans: list[Span] = []
        asking: list[tuple[Sequence, Span]] = []
        for sequence, share in running:
            drafts = self._look_up(sequence, spare, limits) if limits.draft_price < NO_DRAFTS else []
            spare -= len(drafts)
            may_ask = limits.draft_costs is not None and not drafts and sequence.may_draft
            spans.append(sequence.plan(share, self._eos_ids, drafts))
            if may_ask:
                asking.append((sequence, spans[-1]))
        self._most = spare
        if asking:
            self.asks = self._ask(asking, limits)
        return spans

    def add(self, batch: Batch, drafted: Drafted, find: Callable[[Span], Sequence | None], most: int) -> Batch:
        """The batch with the draft model's drafts, at most ``most`` tokens together; ``find`` knows the sequences."""
        ends, most = {ask.id: ask.end for ask in self.asks}, min(most, self._most)
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
            if sequence.block_ids and span.admission == sequence.num_admissions and not self._has_head:
                # The draft model has computed all of its drafts but the last.
                self._blocks.note(sequence, sequence.num_seen + min(num_accepted, len(span.drafts) - 1))
        return num_accepted

    def take_accepted(self) -> int:
        """Drafts of the draft model that were accepted since the last call."""
        reported, self._num_reported = self._num_reported, self.num_accepted[Source.MODEL]
        return self._num_reported - reported

    def take_looked_up(self) -> int:
        """Drafts from elsewhere that were accepted since the last call."""
        before, self._num_looked_up = self._num_looked_up, self.num_accepted.total() - self.num_accepted[Source.MODEL]
        return self._num_looked_up - before

    def expected_lookups(self, streams: Iterable[Sequence], price: float) -> ExpectedDrafts:
        """What lookups would bring for streams of which a token may still be in flight."""
        num_accepted, num_drafts = 0.0, 0
        for sequence in streams:
            rate = sequence.follow_drafts()
            count = num_worth(rate, price, min(MOST, sequence.num_left - 1)) if rate else 0
            if count:
                num_accepted += expected(rate, count) * rate**sequence.num_unknown
                num_drafts += count
        return ExpectedDrafts(num_accepted, num_drafts)

    def would_ask(self, streams: Iterable[Sequence], costs: DraftCosts) -> bool:
        """Whether the draft model would be asked for any of these streams."""
        candidates = [self._candidate(sequence) for sequence in streams]
        return bool(candidates) and bool(choose(candidates, costs))

    def _look_up(self, sequence: Sequence, spare: int, limits: StepLimits) -> list[int]:
        """Draft tokens out of the sequence's text or grammar, as far as the budget and unheld blocks allow.

        A head is right more often than what followed two or three tokens before; what followed many is not asked of it.
        """
        costs = limits.draft_costs
        asks_head = self._has_head and costs is not None and costs.may_pay and costs.spend_s > 0
        least = _LONG_MATCH if asks_head else 0
        drafts = sequence.draft(price=limits.draft_price, most=spare, least_match=least)
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
        if not limits.draft_costs.might_pay:
            return []
        candidates = [self._candidate(sequence) for sequence, _ in asking]
        asks: list[DraftAsk] = []
        choices = choose(candidates, limits.draft_costs)
        chosen = {choice.index for choice in choices}
        for index, (sequence, _) in enumerate(asking):
            if index not in chosen:  # a few wrong guesses must not count for the rest of a long answer
                sequence.model_acceptance.forget(_FORGET)
        for choice in choices:
            sequence, span = asking[choice.index]
            if self._has_room(sequence, sequence.num_known + choice.num_drafts):
                asks.append(_ask_of(sequence, span, choice, limits.draft_costs))
        return asks

    def _candidate(self, sequence: Sequence) -> Candidate:
        room = self._max_draft_len - sequence.num_known
        return Candidate(
            rate=sequence.model_acceptance.rate_from(self._acceptance.rate),
            num_unseen=self._blocks.num_unseen(sequence),
            most=min(sequence.num_left, room),  # the token of the step's own draw counts as one of it already
            num_left=sequence.num_expected,
        )


def _ask_of(sequence: Sequence, span: Span, choice: Choice, costs: DraftCosts) -> DraftAsk:
    first = sequence.num_seen
    return DraftAsk(
        id=sequence.id,
        first=first,
        token_ids=tuple(sequence.token_ids[first : first + choice.chunk]),
        block_ids=tuple(sequence.block_ids),
        num_drafts=choice.num_drafts,
        min_probability=0.0 if choice.is_probe else costs.row_s / costs.token_s,
        next_min_probability=0.0 if choice.is_probe else costs.each_s / costs.token_s,
        is_probe=choice.is_probe,
        draw=_draw_of(span.draw) if choice.num_drafts and span.draw else None,
        arrival=span.arrival,
        admission=span.admission,
    )


def _draw_of(draw: Draw) -> Draw:
    """The draw of a draft: the stream's own, without log probabilities and grammar, which cuts the drafts later."""
    if draw.mask is None and draw.sampling.logprobs is None:
        return draw
    return replace(draw, mask=None, sampling=replace(draw.sampling, logprobs=None))
