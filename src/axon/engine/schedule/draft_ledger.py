"""Learns what the draft model costs, and keeps account of what its drafts cost and save. Reads no clock.

The account bounds the loss. Every step pays in a small share of its time, every accepted draft the time of the token
that it saved; drafts are paid for from it, those that only probe or catch up among them, and none are made that it
cannot pay for. So drafts that are never accepted, or become bad at any moment, cost no more than that share and what
was saved before, up to a limit.
"""

from axon.engine.drafts import Drafted, DraftRound
from axon.engine.schedule.cost_model import CostModel
from axon.engine.schedule.draft_choice import DraftCosts

ALLOWANCE = 0.01
"""Share of the time of all steps that drafts may cost if they save nothing."""
FIRST_STEPS, MOST_STEPS = 32.0, 256.0
"""The account at the start, and its limit, in times of a step."""
_FIRST_SHARE = 0.25
"""Costs of the draft model against the target's, before any are measured."""
_FORGET = 0.999
"""Factor on the draft model's costs with each step in which it computes nothing: a delay that made them look too high
would otherwise keep it from ever being measured again."""


class DraftLedger:
    """The draft model's costs and the account of its drafts, in seconds."""

    def __init__(self, *, most: int) -> None:
        """``most``: most draft tokens of a stream in a step."""
        self._most = most
        self._rounds = CostModel((1.0, 0.2, 1 / 4096), gain_up=0.2, gain_down=0.5)
        self.balance_s: float | None = None
        """The account; None before the first step is measured."""

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
            row_s=row_s + attended_s * length,
            round_s=fixed,
            draft_row_s=row + attended * length,
            spend_s=self.balance_s or 0.0,
            most=self._most,
        )

    def observe(self, drafted: Drafted, costs: DraftCosts, *, num_drafts: int, step_s: float) -> None:
        """Takes in a step: what the draft model took, how many drafts the step computed and how many were accepted.

        ``costs`` are those of its streams without drafts, ``step_s`` is the time of the step without the draft model.
        """
        if not drafted.rounds:
            self._rounds.scale(_FORGET)
        spent_s = num_drafts * costs.row_s + sum(self._spent_s(each) for each in drafted.rounds)
        saved_s = drafted.num_accepted * costs.token_s - spent_s
        balance_s = FIRST_STEPS * costs.step_s if self.balance_s is None else self.balance_s
        self.balance_s = min(balance_s + ALLOWANCE * step_s + saved_s, MOST_STEPS * costs.step_s)

    def _spent_s(self, each: DraftRound) -> float:
        """Learns from a batch of the draft model; returns what it counts for: a delay by something else, not whole."""
        size = (1.0, each.num_tokens, each.num_attended)
        if each.seconds > 0:
            self._rounds.update(size, each.seconds)
        return min(each.seconds, 2 * self._rounds.predict(size))
