"""Learns what drafts of the draft model cost, and keeps account of what they cost and save. Reads no clock.

The account bounds the loss. Every step pays in a small share of its time, every accepted draft the time of the token
that it saved; drafts are paid for from it, those that only probe or catch up among them, and none are made that it
cannot pay for. So drafts that are never accepted, or become bad at any moment, cost no more than that share and what
was saved before, up to a limit. Probes have an account of their own, which the share alone fills: what was saved is
not spent on them.
"""

from axon.engine.drafts import Drafted, DraftRound
from axon.engine.schedule.cost_model import CostModel
from axon.engine.schedule.draft_choice import DraftCosts

ALLOWANCE = 0.01
"""Share of the time of all steps that drafts may cost if they save nothing."""
FIRST_STEPS, MOST_STEPS, PROBE_STEPS = 32.0, 256.0, 8.0
"""The account at the start, its limit, and the limit of the probes' account, in times of a step."""
_FIRST_SHARE = 0.25
"""Costs of the draft model against the target's, before any are measured."""
_FORGET = 0.999
"""Factor on the draft model's costs with each step in which it computes nothing: a delay that made them look too high
would otherwise keep it from ever being measured again."""
_GAIN = 0.1
"""Weight of a step in the averages below."""
_LEAST_FACTOR, _MOST_FACTOR = 0.2, 5.0


class DraftLedger:
    """The costs of drafts and their account, in seconds."""

    def __init__(self, *, most: int) -> None:
        """``most``: most draft tokens of a stream in a step."""
        self._most = most
        self._rounds = CostModel((1.0, 0.2, 1 / 4096), gain_up=0.2, gain_down=0.2)
        self._scatter = 1.0
        """Average time of steps without drafts against their prediction, which estimates from below."""
        self._row_factor = 1.0
        """Average cost of a draft token in the target's step against its prediction, which is a straight line."""
        self.balance_s: float | None = None
        """The account; None before the first step is measured."""
        self._probe_s = 0.0

    def costs(self, *, num_streams: int, num_attended: int, streams: CostModel) -> DraftCosts | None:
        """The costs of drafts in a step with these streams, by the learned costs of target and draft model; None while
        the target's are unknown."""
        if not num_streams or not streams.num_updates:
            return None
        _, row_s, attended_s = streams.costs
        fixed, row, attended = self._rounds.costs
        if not self._rounds.num_updates:
            fixed, row, attended = (_FIRST_SHARE * cost for cost in streams.costs)
        length = num_attended / num_streams
        return DraftCosts(
            num_streams=num_streams,
            step_s=streams.predict((1.0, num_streams, num_attended)),
            row_s=self._row_factor * (row_s + attended_s * length),
            round_s=fixed,
            draft_row_s=row + attended * length,
            spend_s=self.balance_s or 0.0,
            probe_s=self._probe_s,
            most=self._most,
        )

    def observe(
        self, drafted: Drafted, costs: DraftCosts, *, num_drafts: int, step_s: float, is_plain: bool = True
    ) -> None:
        """Takes in a step: what the draft model took, how many drafts the step computed and how many were accepted.

        ``costs`` are those of its streams without drafts, ``step_s`` is the time of the step without the draft model.
        ``is_plain``: the step had neither prompt tokens nor other drafts, so its time shows what these drafts cost.
        """
        if is_plain:
            self._compare(step_s, costs, num_drafts)
        if not drafted.rounds:
            self._rounds.scale(_FORGET)
            self._row_factor += (1 - _FORGET) * (1 - self._row_factor)
        spent_s = num_drafts * costs.row_s + sum(self._spent_s(each) for each in drafted.rounds)
        saved_s = drafted.num_accepted * costs.token_s - spent_s
        paid_s = ALLOWANCE * step_s
        balance_s = FIRST_STEPS * costs.step_s if self.balance_s is None else self.balance_s
        probe_s = PROBE_STEPS * costs.step_s if self.balance_s is None else self._probe_s
        self.balance_s = min(balance_s + paid_s + saved_s, MOST_STEPS * costs.step_s)
        self._probe_s = min(probe_s + paid_s - drafted.is_probe * spent_s, PROBE_STEPS * costs.step_s)

    def _compare(self, step_s: float, costs: DraftCosts, num_drafts: int) -> None:
        """Learns how far the time of a step is from its prediction, with drafts or without."""
        if not num_drafts:
            self._scatter += _GAIN * (min(step_s / costs.step_s, _MOST_FACTOR) - self._scatter)
            return
        predicted_s = num_drafts * costs.row_s / self._row_factor
        factor = (step_s - self._scatter * costs.step_s) / predicted_s
        factor = min(max(factor, _LEAST_FACTOR), _MOST_FACTOR)
        self._row_factor += _GAIN * (factor - self._row_factor)

    def _spent_s(self, each: DraftRound) -> float:
        """Learns from a batch of the draft model; returns what it counts for: a delay by something else, not whole."""
        size = (1.0, each.num_tokens, each.num_attended)
        if each.seconds > 0:
            self._rounds.update(size, each.seconds)
        return min(each.seconds, 2 * self._rounds.predict(size))
