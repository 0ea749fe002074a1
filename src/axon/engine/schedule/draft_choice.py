"""Chooses for which streams the draft model drafts in a step, and how many tokens. Pure functions.

A step without drafts takes ``step_s`` and yields a token for each stream. Drafts lengthen it by known costs and yield
more tokens with known probabilities, so the choice is the one with the most expected tokens a second. Where no choice
is better than none, a single draft is tried now and then (a probe), as soon as what may be spent pays for it: else
nobody would notice that drafts have become better.

A stream whose text the draft model has not seen first has it computed (caught up), a chunk a step. That is an
investment, made where the drafts of the rest of the answer are expected to save more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

_NEAR = 32
"""Most unseen tokens of a stream that are computed in the same batch that drafts: hardly dearer than one."""
CHUNK = 128
"""Most tokens of a stream that the draft model catches up in one step."""
_MARGIN = 1.02
"""Factor by which drafts must be expected to raise the tokens a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftCosts:
    """Costs of a step in seconds, and what may be spent."""

    num_streams: int
    step_s: float
    """Time of the step without drafts."""
    row_s: float
    """What the target model takes for a draft token."""
    round_s: float
    """What a batch of the draft model takes whatever its size."""
    draft_row_s: float
    """What the draft model takes for each token of its batch."""
    spend_s: float
    """The most that the drafts of this step may cost."""
    probe_s: float
    """The most of it that may be spent to find out what drafts are worth."""
    most: int
    """Most draft tokens of a stream."""

    @property
    def token_s(self) -> float:
        """Time that a token takes without drafts, and that each accepted draft saves."""
        return self.step_s / self.num_streams

    @property
    def each_s(self) -> float:
        """Cost of a draft token that shares no batch with another stream's."""
        return self.row_s + self.round_s + self.draft_row_s

    @property
    def may_pay(self) -> bool:
        """Whether drafts could save time if all were accepted and every stream had some."""
        return self.token_s > self.row_s + self.draft_row_s + self.round_s / self.num_streams


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
    """What the draft model does for a stream in this step."""

    index: int
    """The stream's place among the candidates."""
    num_drafts: int
    chunk: int
    """Tokens that it computes first; with 0 drafts, only these."""
    is_probe: bool = False
    """Whether it is not expected to save time, only to show what drafts are worth."""


def choose(candidates: Sequence[Candidate], costs: DraftCosts) -> list[Choice]:
    """The choices for the streams that get any; they cost no more than ``spend_s`` together, by the costs given."""
    if not costs.may_pay or costs.spend_s <= 0:
        return []
    order = sorted(range(len(candidates)), key=lambda index: -candidates[index].rate)
    near = [index for index in order if candidates[index].num_unseen <= _NEAR and candidates[index].most > 0]
    far = [index for index in order if candidates[index].num_unseen > _NEAR and candidates[index].most > 0]
    chosen, spent_s = _best(candidates, near, costs)
    if not chosen and near:
        chosen, spent_s = _probe(candidates, near, costs)
    catching_up = _catch_up(candidates, far, costs, spent_s, probes=not near)
    return [*chosen, *catching_up]


def expected(rate: float, num_drafts: int) -> float:
    """Expected number of accepted drafts: the third counts only if all three are accepted."""
    return num_drafts if rate >= 1 else rate * (1 - rate**num_drafts) / (1 - rate)


def cost_s(num_unseen: Sequence[int], num_drafts: int, costs: DraftCosts) -> float:
    """What so many drafts for each of several streams cost, with the tokens that they have unseen."""
    num_rows = len(num_unseen) * num_drafts
    first_rows = sum(num_unseen) - len(num_unseen)
    rows_s = num_rows * (costs.row_s + costs.draft_row_s) + first_rows * costs.draft_row_s
    return num_drafts * costs.round_s + rows_s


def _best(candidates: Sequence[Candidate], near: list[int], costs: DraftCosts) -> tuple[list[Choice], float]:
    """The number of streams, the best first, and of drafts with the most expected tokens a second; and its cost."""
    best, chosen, spent_s = _MARGIN * costs.num_streams / costs.step_s, (0, 0), 0.0
    for num_drafts in range(1, costs.most + 1):
        gain, unseen = 0.0, list[int]()
        for index in near:
            each = candidates[index]
            gain += expected(each.rate, min(num_drafts, each.most))
            unseen.append(each.num_unseen)
            added_s = cost_s(unseen, num_drafts, costs)
            speed = (costs.num_streams + gain) / (costs.step_s + added_s)
            if speed > best and added_s <= costs.spend_s:
                best, chosen, spent_s = speed, (len(unseen), num_drafts), added_s
    num_chosen, num_drafts = chosen
    return [_drafting(candidates, index, num_drafts) for index in near[:num_chosen]], spent_s


def _probe(candidates: Sequence[Candidate], near: list[int], costs: DraftCosts) -> tuple[list[Choice], float]:
    """One draft for the stream that has fewest tokens unseen, if what may be spent pays for it; and its cost."""
    index = min(near, key=lambda index: candidates[index].num_unseen)
    added_s = cost_s([candidates[index].num_unseen], 1, costs)
    if added_s > min(costs.spend_s, costs.probe_s):
        return [], 0.0
    return [Choice(index, 1, candidates[index].num_unseen, is_probe=True)], added_s


def _catch_up(
    candidates: Sequence[Candidate], far: list[int], costs: DraftCosts, spent_s: float, *, probes: bool
) -> list[Choice]:
    """A chunk for the stream that gains most by it; with ``probes`` also for one that only shows what drafts bring."""
    best = 0.0
    chosen: int | None = None
    probe: int | None = None
    for index in far:
        each = candidates[index]
        seen_s = each.num_unseen * costs.draft_row_s + -(-each.num_unseen // CHUNK) * costs.round_s
        needed_s = spent_s + seen_s + costs.each_s
        saved_s = _saved_s(each, costs) - seen_s
        if needed_s <= costs.spend_s and saved_s > best:
            best, chosen = saved_s, index
        elif probes and probe is None and needed_s <= min(costs.spend_s, costs.probe_s):
            probe = index
    taken = probe if chosen is None else chosen
    if taken is None:
        return []
    return [Choice(taken, 0, min(candidates[taken].num_unseen - 1, CHUNK), is_probe=chosen is None)]


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
