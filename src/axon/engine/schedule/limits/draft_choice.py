"""Chooses for which streams the draft model drafts in a step, and how many tokens. Pure functions.

A step without drafts takes ``step_s`` and yields a token for each stream. Drafts lengthen it by known costs and yield
more tokens with known probabilities, so the choice is the one with the most expected tokens a second. Where no choice
is better than none, a single draft is tried now and then (a probe), as soon as what may be spent pays for it: else
nobody would notice that drafts have become better.

A stream whose text the draft model has not seen first has it computed (caught up), a chunk a step. That is an
investment, made where the drafts of the rest of the answer are expected to save more: for one stream by itself, or for
several together, beside those that have drafts already, which share the fixed time of the draft model's batches and the
device's wait.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from axon.engine.drafts import NEAR

CHUNK = 128
"""Most tokens that the draft model catches up in one step, on a CPU."""
_MARGIN = 1.02
"""Factor by which drafts must be expected to raise the tokens a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftCosts:
    """Costs of a step in seconds, and what may be spent."""

    num_streams: int
    step_s: float
    """Time of the step without drafts."""
    row_s: float
    """Seconds that a draft token adds to the step of the target model."""
    round_s: float
    """Fixed seconds of a batch of the draft model, whatever its size."""
    draft_row_s: float
    """Seconds of the draft model for each token of its batch."""
    chunk_s: float | None = None
    """Fixed seconds of a batch of the draft model that catches up; None if it takes as long as other batches."""
    chunk_row_s: float | None = None
    """Seconds for each token of a batch that catches up; None together with ``chunk_s``."""
    spend_s: float
    """Most seconds that the drafts of this step may cost."""
    probe_s: float
    """Most seconds of ``spend_s`` that may be spent to find out what drafts are worth."""
    most: int
    """Most draft tokens of a stream."""
    chunk: int = CHUNK
    """Most tokens that the draft model catches up in one step."""
    belief: float = 1.0
    """Factor from 0 to 1 on the costs where a probe is weighed: the less they are believed, the sooner it measures them
    again."""
    wait_s: float = 0.0
    """Seconds that any drafts of a step cost once: a device then waits for the plan of the step."""

    @property
    def token_s(self) -> float:
        """Time that a token takes without drafts, and that each accepted draft saves."""
        return self.step_s / self.num_streams

    @property
    def plain_speed(self) -> float:
        """Tokens a second without drafts."""
        return self.num_streams / self.step_s

    @property
    def each_s(self) -> float:
        """Cost of a draft token that shares no batch with another stream's."""
        return self.row_s + self.round_s + self.draft_row_s + self.wait_s

    def seen_s(self, num_unseen: int) -> float:
        """Time in which the draft model computes so many unseen tokens, a chunk a step, before it drafts."""
        chunk_s = self.round_s if self.chunk_s is None else self.chunk_s
        row_s = self.draft_row_s if self.chunk_row_s is None else self.chunk_row_s
        return num_unseen * row_s + -(-num_unseen // self.chunk) * (chunk_s + self.wait_s)

    @property
    def may_pay(self) -> bool:
        """Whether drafts could save time if all were accepted and every stream had some."""
        return self.token_s > self._least_s

    @property
    def might_pay(self) -> bool:
        """Whether drafts could save time if they cost ``belief`` times as much."""
        return self.token_s > self.belief * self._least_s

    @property
    def _least_s(self) -> float:
        """Cost of a draft token if every stream has one."""
        return self.row_s + self.draft_row_s + (self.round_s + self.wait_s) / self.num_streams


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A stream that could get drafts."""

    rate: float
    """Estimated probability that a draft is accepted if those before it were."""
    num_unseen: int
    """Tokens that the draft model has to compute before it can draft, the last one included."""
    most: int
    """Drafts that the stream has room for."""
    num_left: int
    """Tokens that its answer is expected to go on for."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The work of the draft model for one stream in this step."""

    index: int
    """The stream's place among the candidates."""
    num_drafts: int
    chunk: int
    """Tokens that it computes first; with 0 drafts, only these."""
    is_probe: bool = False
    """Whether it is not expected to save time, only to show what drafts are worth."""


def choose(candidates: Sequence[Candidate], costs: DraftCosts) -> list[Choice]:
    """The choices for the streams that get any; they cost no more than ``spend_s`` together, by the costs given."""
    if not costs.might_pay or costs.spend_s <= 0:
        return []
    order = sorted(range(len(candidates)), key=lambda index: -candidates[index].rate)
    near = [index for index in order if candidates[index].num_unseen <= NEAR and candidates[index].most > 0]
    far = [index for index in order if candidates[index].num_unseen > NEAR and candidates[index].most > 0]
    chosen, spent_s, speed = _best(candidates, near, costs) if costs.may_pay else ([], 0.0, costs.plain_speed)
    together = _catch_up_together(candidates, near, far, costs, spent_s, speed) if costs.may_pay else []
    if not chosen and near and not together:
        chosen, spent_s = _probe(candidates, near, costs)
    return [*chosen, *(together or _catch_up(candidates, far, costs, spent_s, probes=not near))]


def expected(rate: float, num_drafts: int) -> float:
    """Expected number of accepted drafts: the third counts only if all three are accepted."""
    return num_drafts if rate >= 1 else rate * (1 - rate**num_drafts) / (1 - rate)


def cost_s(num_streams: int, num_drafts: int, num_unseen: int, costs: DraftCosts) -> float:
    """Cost in seconds of ``num_drafts`` drafts for each of ``num_streams`` streams, which have ``num_unseen`` unseen
    tokens together."""
    rows_s = num_streams * num_drafts * (costs.row_s + costs.draft_row_s)
    first_rows = num_unseen - num_streams
    return costs.wait_s + num_drafts * costs.round_s + rows_s + first_rows * costs.draft_row_s


def _best(candidates: Sequence[Candidate], near: list[int], costs: DraftCosts) -> tuple[list[Choice], float, float]:
    """Chooses how many of the ``near`` streams, the best first, get how many drafts, for the most expected tokens a
    second. Returns the choices, their cost in seconds, and the tokens a second with them."""
    best, chosen, spent_s = _MARGIN * costs.plain_speed, (0, 0), 0.0
    for num_drafts in range(1, costs.most + 1):
        gain, num_unseen = 0.0, 0
        for number, index in enumerate(near, start=1):
            gain += _gain(candidates[index], num_drafts)
            num_unseen += candidates[index].num_unseen
            added_s = cost_s(number, num_drafts, num_unseen, costs)
            speed = (costs.num_streams + gain) / (costs.step_s + added_s)
            if speed > best and added_s <= costs.spend_s:
                best, chosen, spent_s = speed, (number, num_drafts), added_s
    num_chosen, num_drafts = chosen
    choices = [_drafting(candidates, index, num_drafts) for index in near[:num_chosen]]
    return choices, spent_s, best if choices else costs.plain_speed


def _gain(candidate: Candidate, num_drafts: int) -> float:
    """Expected number of accepted drafts of a stream that gets so many, or as many as it has room for."""
    return expected(candidate.rate, min(num_drafts, candidate.most))


def _probe(candidates: Sequence[Candidate], near: list[int], costs: DraftCosts) -> tuple[list[Choice], float]:
    """One draft for the stream that has fewest tokens unseen, if what may be spent pays for it; and its cost."""
    index = min(near, key=lambda index: candidates[index].num_unseen)
    added_s = cost_s(1, 1, candidates[index].num_unseen, costs)
    if costs.belief * added_s > min(costs.spend_s, costs.probe_s):
        return [], 0.0
    return [Choice(index, 1, candidates[index].num_unseen, is_probe=True)], added_s


def _catch_up_together(
    candidates: Sequence[Candidate],
    near: list[int],
    far: list[int],
    costs: DraftCosts,
    spent_s: float,
    speed: float,
) -> list[Choice]:
    """Chooses the ``far`` streams, the best first, that save most time if all of them are caught up, and a chunk of
    them. Steps then have drafts for these and the ``near`` ones. None are chosen if such steps would not yield
    ``_MARGIN`` times the tokens a second of this one, ``speed``, or if the rest of the answers is too short to repay
    the time. ``spent_s`` is what this step's drafts cost already."""
    best, chosen = 0.0, 0
    for num_drafts in range(1, costs.most + 1):
        gain = sum(_gain(candidates[index], num_drafts) for index in near)
        num_unseen = num_left = 0
        for number, index in enumerate(far, start=1):
            each, num_together = candidates[index], len(near) + number
            gain += _gain(each, num_drafts)
            num_unseen, num_left = num_unseen + each.num_unseen, num_left + each.num_left
            added_s = cost_s(num_together, num_drafts, num_together, costs)
            faster = (costs.num_streams + gain) / (costs.step_s + added_s)
            if num_together == 1 or faster < _MARGIN * speed:
                continue  # a stream beside none is left to _catch_up
            seen_s = costs.seen_s(num_unseen)
            saved_s = costs.num_streams * num_left / number * (1 / speed - 1 / faster) - seen_s
            if saved_s > best and spent_s + seen_s + added_s <= costs.spend_s:
                best, chosen = saved_s, number
    return _chunks(candidates, far[:chosen], costs.chunk)


def _chunks(candidates: Sequence[Candidate], indices: list[int], chunk: int) -> list[Choice]:
    """Divides one chunk among these streams. Those that lack least come first: they may have drafts soonest."""
    choices: list[Choice] = []
    for index in sorted(indices, key=lambda index: candidates[index].num_unseen):
        num_tokens = min(candidates[index].num_unseen - 1, chunk)
        if num_tokens > 0:
            choices.append(Choice(index, 0, num_tokens))
        chunk -= num_tokens
    return choices


def _catch_up(
    candidates: Sequence[Candidate], far: list[int], costs: DraftCosts, spent_s: float, *, probes: bool
) -> list[Choice]:
    """Chooses a chunk for the one stream that saves most time if it alone is caught up. Where none saves any,
    ``probes`` lets one be caught up to show what drafts are worth."""
    best = 0.0
    chosen: int | None = None
    probe: int | None = None
    for index in far:
        each = candidates[index]
        seen_s = costs.seen_s(each.num_unseen)
        needed_s = spent_s + seen_s + costs.each_s
        saved_s = _saved_s(each, costs) - seen_s
        if needed_s <= costs.spend_s and saved_s > best:
            best, chosen = saved_s, index
        elif probes and probe is None and costs.belief * needed_s <= min(costs.spend_s, costs.probe_s):
            probe = index
    taken = probe if chosen is None else chosen
    if taken is None:
        return []
    num_unseen = candidates[taken].num_unseen
    if chosen is None and num_unseen <= costs.chunk:
        # The draft comes at once: a later step might not pay for it, and would have it all to do again.
        return [Choice(taken, 1, num_unseen, is_probe=True)]
    return [Choice(taken, 0, min(num_unseen - 1, costs.chunk), is_probe=chosen is None)]


def _saved_s(candidate: Candidate, costs: DraftCosts) -> float:
    """Time that drafts are expected to save over the rest of the stream's answer, once it has been caught up."""
    best = 0.0
    for num_drafts in range(1, min(costs.most, candidate.most) + 1):
        gain = expected(candidate.rate, num_drafts)
        num_steps = candidate.num_left / (1 + gain)
        best = max(best, num_steps * (gain * costs.token_s - num_drafts * costs.each_s))
    return best


def _drafting(candidates: Sequence[Candidate], index: int, num_drafts: int) -> Choice:
    each = candidates[index]
    return Choice(index, min(num_drafts, each.most), each.num_unseen)
