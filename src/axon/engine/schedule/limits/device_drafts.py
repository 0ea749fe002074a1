"""Decides in which steps of a GPU streams get drafts, by measured costs and what drafts have brought. Reads no clock.

Without drafts a step is launched before the one before it is settled, and the device never waits. With drafts it waits:
nothing can be drafted behind a token that is not known yet. So drafts must bring more than the device's wait and their
rows cost. What looked-up drafts would bring is known without drafting, by following the tokens that come; what the
draft model brings is known by probing, which its ledger pays for.

An account bounds what lookups cost where they do not help, as the ledger bounds the draft model's: no step waits for a
lookup that the account cannot pay. What a step with lookups took beyond its streams is paid as it was measured, because
a step with drafts may run other kernels than one without; so the time of streams is learned from steps without drafts
alone.
"""

from dataclasses import replace

from axon.engine.batch import Batch
from axon.engine.drafts import Drafted
from axon.engine.schedule.limits.controller import Forecast, StepLimits
from axon.engine.schedule.limits.cost_model import CostModel
from axon.engine.schedule.limits.draft_choice import DraftCosts
from axon.engine.schedule.limits.draft_ledger import DraftLedger
from axon.engine.schedule.limits.lookup_account import LookupAccount

MOST_STREAMS = 32
"""With more streams nobody looks for drafts: the rows of drafts cost the device too much, and the search the host."""
MOST_DRAFTS = 192
"""Most draft tokens of a step."""
_MARGIN = 1.02
"""Factor by which drafts must be expected to raise the tokens a second."""
_FIRST_WAIT = 0.08
"""The device's wait against a step, before any is measured."""
_LEAST_PRICE = 0.05
"""Lower bound of a draft's price: drafts that are less likely to be accepted are never computed."""
_CHUNK = 1024
"""Most tokens of a stream that the draft model catches up in one step."""
_SURPRISE = 2.0
"""Factor above the predicted time from which a step is a delay of something else, unless it happens again and again."""
_MOST_SURPRISES = 3
_FORGET_SURPRISES = 1 / 256
"""Part of a delay that a step as predicted takes off their count: delays need not come in a row to be no surprise."""
_GAIN, _DOUBT = 0.2, 0.005
"""Weights of a step with drafts in the estimate of a draft's cost, and of a step without in forgetting it."""
_LEAST_FACTOR, _MOST_FACTOR = 0.2, 500.0
_MOST_LOSS = 16.0
"""Most that one step with lookups is charged, in times of a step."""
# Ratios of the costs before anything is measured: [fixed, row, attended], and [fixed, stream] of a wait.
_FIRST_COSTS = (1.0, 0.006, 8e-6)
_FIRST_WAITS = (1.0, 0.05)


class DeviceDrafts:
    """The costs of steps and waits, and the account of lookups, in seconds."""

    def __init__(self, *, draft_tokens: int = 0) -> None:
        """``draft_tokens``: most tokens that the draft model drafts for a stream in a step; 0 without one."""
        self._streams = CostModel(_FIRST_COSTS, gain_up=0.2, gain_down=0.5)
        self._waits = CostModel(_FIRST_WAITS, gain_up=0.2, gain_down=0.2)
        self._ledger = DraftLedger(most=draft_tokens, on_device=True) if draft_tokens else None
        self._account = LookupAccount()
        self._row_factor = 1.0
        """Average cost of a draft token against that of one more stream."""
        self._num_surprises = 0.0

    def limits(self, forecast: Forecast, max_prefill_tokens: int) -> StepLimits:
        """The limits of the next step; with drafts only if they are expected to save time, or to show what they do."""
        plain = StepLimits(max_prefill_tokens=max_prefill_tokens)
        if not self._streams.num_updates or forecast.has_prompts:
            return plain
        outlook = forecast.outlook()
        num_streams, num_attended = outlook.num_streams, outlook.num_attended
        if not 0 < num_streams <= MOST_STREAMS:
            return plain
        step_s, row_s, wait_s = self._costs(num_streams, num_attended)
        price = max(row_s * num_streams / step_s, _LEAST_PRICE)
        lookups = forecast.expected_lookups(price)
        cost_s = wait_s + lookups.num_drafts * row_s
        speed = (num_streams + lookups.num_accepted) / (step_s + cost_s)
        looks_up = lookups.num_drafts > 0 and speed > _MARGIN * num_streams / step_s and self._account.can_pay(cost_s)
        costs = self._model_costs(num_streams, num_attended, 0.0 if looks_up else wait_s)
        if not looks_up and (costs is None or not forecast.would_ask(costs)):
            return plain
        return StepLimits(
            max_prefill_tokens=max_prefill_tokens, draft_price=price, draft_costs=costs, max_drafts=MOST_DRAFTS
        )

    def observe(self, batch: Batch, *, compute_s: float, drafted: Drafted) -> None:
        """Learns from a step of streams alone; ``compute_s`` is the time since the step before, with the device's wait
        and without the draft model's time."""
        spans = batch.spans
        if not spans or not all(span.is_stream for span in spans) or compute_s <= drafted.wait_s:
            return
        streams = (len(spans), sum(span.end - len(span.drafts) for span in spans))
        device_s = compute_s - drafted.wait_s
        if drafted.wait_s > 0:
            self._waits.update((1.0, len(spans)), drafted.wait_s)
        num_drafts = sum(len(span.drafts) for span in spans)
        if self._is_surprise(*streams, num_drafts, device_s):
            return
        if not num_drafts:
            self._streams.update((1.0, *streams), device_s)
            self._row_factor += _DOUBT * (1.0 - self._row_factor)
        if not self._streams.num_updates:
            return
        drafts_s = self._learn_rows(*streams, num_drafts, device_s) if num_drafts else 0.0
        step_s, _, wait_s = self._costs(*streams)
        num_model = sum(len(span.drafts) for span in spans if span.id in drafted.by_id)
        waited_s = 0.0 if drafted.rounds else min(drafted.wait_s, 2 * wait_s)
        looked_up_s = drafts_s * (num_drafts - num_model) / max(num_drafts, 1)
        saved_s = drafted.num_looked_up * step_s / len(spans) - waited_s - looked_up_s
        self._account.enter(step_s=device_s, plain_s=step_s, saved_s=saved_s)
        costs = self._model_costs(*streams, wait_s)
        if self._ledger is not None and costs is not None:
            self._ledger.observe(
                drafted, costs, num_drafts=num_model, step_s=device_s, is_plain=num_drafts == num_model
            )

    def _costs(self, num_streams: int, num_attended: int) -> tuple[float, float, float]:
        """Seconds of a step without drafts, of one more row, and of the device's wait before a step with drafts."""
        _, row_s, attended_s = self._streams.costs
        step_s = self._streams.predict((1.0, num_streams, num_attended))
        wait_s = self._waits.predict((1.0, num_streams)) if self._waits.num_updates else _FIRST_WAIT * step_s
        return step_s, self._row_factor * (row_s + attended_s * num_attended / num_streams), wait_s

    def _learn_rows(self, num_streams: int, num_attended: int, num_drafts: int, device_s: float) -> float:
        """Learns from a step with drafts what one costs; returns what all of the step have cost."""
        step_s, row_s, _ = self._costs(num_streams, num_attended)
        drafts_s = min(max(device_s - step_s, 0.0), _MOST_LOSS * step_s)
        factor = self._row_factor * drafts_s / (num_drafts * row_s)
        self._row_factor += _GAIN * (min(max(factor, _LEAST_FACTOR), _MOST_FACTOR) - self._row_factor)
        return drafts_s

    def _model_costs(self, num_streams: int, num_attended: int, wait_s: float) -> DraftCosts | None:
        if self._ledger is None:
            return None
        costs = self._ledger.costs(
            num_streams=num_streams, num_attended=num_attended, streams=self._streams, wait_s=wait_s
        )
        return None if costs is None else replace(costs, chunk=_CHUNK)

    def _is_surprise(self, num_streams: int, num_attended: int, num_drafts: int, device_s: float) -> bool:
        """Whether a step took far longer than predicted, as while a graph is recorded. After a few it is False, also
        with other steps between them: then steps do take that long."""
        step_s, row_s, _ = self._costs(num_streams, num_attended)
        is_far = self._streams.num_updates > 0 and device_s > _SURPRISE * (step_s + num_drafts * row_s)
        self._num_surprises = max(0.0, self._num_surprises + (1 if is_far else -_FORGET_SURPRISES))
        return is_far and self._num_surprises <= _MOST_SURPRISES
