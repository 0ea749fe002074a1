"""Learns what drafts of the draft model cost, and keeps account of what they cost and save. Reads no clock.

The account bounds the loss. Every step pays in a small share of its time, every accepted draft the time of the token
that it saved; drafts are paid for from it, those that only probe or catch up among them, and none are made that it
cannot pay for. So drafts that are never accepted, or become bad at any moment, cost no more than that share and what
was saved before, up to a limit. Probes have an account of their own, which the share alone fills: what was saved is
not spent on them.

On a CPU another process may have had the cores. So a batch of the draft model is charged at most twice its prediction,
and the time that drafts add to the target's step as it is predicted. A device runs nothing else, and a step with drafts
may run other kernels there than one without. So both are charged as they were measured, up to a bound and but for a few
delays, in which graphs are recorded; and the time that drafts add to a step is learned as a fixed part and a part for
each draft.
"""

from axon.engine.drafts import Drafted, DraftRound
from axon.engine.schedule.limits.cost_model import CostModel
from axon.engine.schedule.limits.draft_choice import DraftCosts
from axon.engine.schedule.limits.lookup_account import ALLOWANCE

FIRST_STEPS, MOST_STEPS, PROBE_STEPS = 32.0, 256.0, 8.0
"""The account at the start, its limit, and the limit of the probes' account, in times of a step."""
_FIRST_SHARE = 0.25
"""Costs of the draft model against the target's, before any are measured."""
_DOUBT = 0.98
"""Factor on the belief in measured costs of drafts with each step without any: a delay that made them look too high
would otherwise keep the draft model from ever being measured again."""
_GAIN, _MOST_FACTOR = 0.1, 5.0
"""Weight of a step in the average below, and the most that its time counts against its prediction."""
_SURPRISE = 4.0
"""Factor above its prediction from which a batch on a device is taken for a delay, as while its graph is recorded."""
_MOST_SURPRISES = 8
"""Number of delays that are neither learned nor charged; the later ones are, because batches do take that long."""
_MOST_LOSS = 16.0
"""Most that a device's batch is charged, and most that the time is which drafts add to a step, in times of a step."""
_LEAST_EXTRA = 0.001
"""Lower bound of the time that drafts add to a device's step, as it is learned, in times of a step."""
_LEAST_ROW = 0.02
"""Lower bound of what a row costs, in times of a step."""


class DraftLedger:
    """The costs of drafts and their account, in seconds."""

    def __init__(self, *, most: int, on_device: bool = False) -> None:
        """``most``: most draft tokens of a stream in a step. ``on_device``: the models run on a device of their own."""
        self._most, self._on_device = most, on_device
        self._rounds = CostModel((1.0, 0.2, 1 / 4096), gain_up=0.2, gain_down=0.2)
        """Seconds of the draft model's batches: [fixed, per token, per attended token]."""
        self._chunks = CostModel((1.0, 0.005, 1e-6), gain_up=0.2, gain_down=0.2)
        """Seconds of a device's batches that catch up: [fixed, per token, per attended token]."""
        self._extra = CostModel((1.0, 0.05), gain_up=0.2, gain_down=0.2)
        """Seconds that drafts add to a device's step: [fixed, per draft]."""
        self._num_surprises = 0
        """Delays so far that were neither learned nor charged."""
        self._scatter = 1.0
        """Average time of a device's steps without drafts against their prediction, which estimates from below."""
        self._belief = 1.0
        """How far the measured costs are believed, from 1 down to 0 while no more are measured."""
        self.balance_s: float | None = None
        """The account; None before the first step is measured."""
        self._probe_s = 0.0

    def costs(
        self,
        *,
        num_streams: int,
        num_attended: int,
        streams: CostModel,
        row_factor: float = 1.0,
        wait_s: float = 0.0,
    ) -> DraftCosts | None:
        """The costs of drafts in a step with these streams, by the learned costs of target and draft model; None while
        the target's are unknown. ``row_factor``: measured over predicted time that a draft adds to a
        step. ``wait_s``: for how long a device then waits; 0 if it waits for lookups anyway."""
        if not num_streams or not streams.num_updates:
            return None
        _, row_s, attended_s = streams.costs
        fixed, row, attended = self._rounds.costs
        if not self._rounds.num_updates:
            fixed, row, attended = (_FIRST_SHARE * cost for cost in streams.costs)
        chunks = self._chunks if self._chunks.num_updates else None
        length, step_s = num_attended / num_streams, streams.predict((1.0, num_streams, num_attended))
        row_s = max(row_factor * (row_s + attended_s * length), _LEAST_ROW * step_s)
        if self._extra.num_updates:
            extra_s, row_s = self._extra.costs
            wait_s += extra_s if wait_s else 0.0  # beside lookups the step takes the fixed part anyway
        return DraftCosts(
            num_streams=num_streams,
            step_s=step_s,
            row_s=row_s,
            round_s=fixed,
            draft_row_s=row + attended * length,
            chunk_s=chunks.costs[0] if chunks else None,
            chunk_row_s=chunks.costs[1] + chunks.costs[2] * length if chunks else None,
            spend_s=self.balance_s or 0.0,
            probe_s=self._probe_s,
            most=self._most,
            wait_s=wait_s,
            belief=self._belief,
        )

    def resume(self, step_s: float) -> None:
        """Lets probes be paid from what was saved, once: there were too many streams for drafts, and now there are not.
        What was learned before may be wrong by now."""
        limit_s = PROBE_STEPS * step_s
        if self.balance_s is not None and self.balance_s > limit_s:
            self._probe_s = limit_s

    def observe(
        self, drafted: Drafted, costs: DraftCosts, *, num_drafts: int, step_s: float, is_plain: bool = True
    ) -> None:
        """Takes in a step: what the draft model took, how many drafts the step computed and how many were accepted.

        ``costs`` are those of its streams without drafts, ``step_s`` is the time of the step without the draft model.
        ``is_plain``, of a device: the step had neither prompt tokens nor other drafts, so its time shows what these
        drafts cost.
        """
        extra_s = num_drafts * costs.row_s
        if self._on_device and is_plain:
            self._compare(step_s, costs, num_drafts)
            if num_drafts:
                extra_s = min(max(step_s - self._scatter * costs.step_s, 0.0), _MOST_LOSS * costs.step_s)
        self._belief = 1.0 if drafted.rounds else self._belief * _DOUBT
        spent_s = extra_s + sum(self._spent_s(each, costs) for each in drafted.rounds)
        spent_s += min(drafted.wait_s, 2 * costs.wait_s) if drafted.rounds else 0.0
        saved_s = drafted.num_accepted * costs.token_s - spent_s
        paid_s = ALLOWANCE * step_s
        balance_s = FIRST_STEPS * costs.step_s if self.balance_s is None else self.balance_s
        probe_s = PROBE_STEPS * costs.step_s if self.balance_s is None else self._probe_s
        self.balance_s = min(balance_s + paid_s + saved_s, MOST_STEPS * costs.step_s)
        self._probe_s = min(probe_s + paid_s - drafted.is_probe * spent_s, PROBE_STEPS * costs.step_s)

    def _compare(self, step_s: float, costs: DraftCosts, num_drafts: int) -> None:
        """Learns how far the time of a device's step is from its prediction, with drafts or without."""
        if not num_drafts:
            self._scatter += _GAIN * (min(step_s / costs.step_s, _MOST_FACTOR) - self._scatter)
            return
        extra_s = step_s - self._scatter * costs.step_s
        self._extra.update((1.0, num_drafts), max(extra_s, _LEAST_EXTRA * costs.step_s))

    def _spent_s(self, each: DraftRound, costs: DraftCosts) -> float:
        """Learns from a batch of the draft model; returns what it is charged."""
        model = self._chunks if each.is_chunk else self._rounds
        size = (1.0, each.num_tokens, each.num_attended)
        # Before any batch is measured, one that takes longer than the target's step is a delay.
        usual_s = model.predict(size) if model.num_updates else costs.step_s / _SURPRISE
        if self._on_device and each.seconds > _SURPRISE * usual_s and self._num_surprises < _MOST_SURPRISES:
            self._num_surprises += 1
            return usual_s
        if each.seconds > 0:
            model.update(size, each.seconds)
        return min(each.seconds, _MOST_LOSS * costs.step_s if self._on_device else 2 * model.predict(size))
