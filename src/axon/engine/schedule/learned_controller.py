"""Sets chunk and draft sizes on a CPU from a learned cost model of steps. Reads no clock.

The time of a step is modelled as linear in four parts: a fixed part, the streams, the prompt tokens, and the tokens
that all of these attend to. Recursive least squares follows the costs as the machine and its load change. The chunk is
as large as the allowed slowdown of the streams and the allowed time between two of their tokens permit. Neither
chunks nor drafts change any token, so what is learned may differ from run to run.
"""

from math import inf

from axon.engine.batch import Batch
from axon.engine.schedule.controller import NO_DRAFTS, Forecast, Outlook, StepLimits
from axon.engine.schedule.least_squares import RecursiveLeastSquares, Vector

_FIRST_TOKENS = 8  # the chunk before any prompt was measured
_FEWEST_TOKENS = 1  # a prompt always advances
_LEAST_SPARE = 0.1  # fraction of the streams' own time left to prompts where the streams alone exceed their time
_FORGETTING_FACTOR = 0.97
_FIRST_VARIANCE = 100.0
_FIRST_PRICE, _LEAST_PRICE = 0.3, 0.05  # of a draft token: before anything is known, and the lower bound
# Scales of the regressors, so that one unit of each costs about the same time.
_STREAMS, _TOKENS, _ATTENDED = 8, 8, 16_384


class LearnedController:
    """A linear cost model of steps and the limits that follow from it."""

    def __init__(
        self, *, max_prefill_tokens: int, max_slowdown: float, slo_s: float = inf, drafts: bool = False
    ) -> None:
        self._most = max_prefill_tokens
        self._spare = max_slowdown - 1
        self._slo_s = slo_s
        self._drafts = drafts
        self._limits = StepLimits(max_prefill_tokens=max_prefill_tokens)
        self._costs = RecursiveLeastSquares(4, forgetting_factor=_FORGETTING_FACTOR, first_variance=_FIRST_VARIANCE)
        """Estimated seconds per unit: [fixed, per 8 streams, per 8 prompt tokens, per 16,384 attended tokens]."""

    def limits(self, forecast: Forecast) -> StepLimits:
        """The chunk and the draft price for the work that stands before the next step."""
        if self._drafts or forecast.has_prompts:
            outlook = forecast.outlook()
            price = self.draft_price(outlook) if self._drafts else NO_DRAFTS
            self._limits = StepLimits(max_prefill_tokens=self.num_prefill_tokens(outlook), draft_price=price)
        return self._limits

    def num_prefill_tokens(self, outlook: Outlook) -> int:
        """Number of prompt tokens that fit into a step with these streams."""
        alone_s = self._costs.predict(_regressors(outlook.num_streams, 0, outlook.num_attended))
        token_s = self._costs.predict(_regressors(0, 1, outlook.prompt_at))
        if alone_s <= 0 or not self._costs.weights[2]:
            return min(_FIRST_TOKENS, self._most)
        spare_s = min(self._spare * alone_s, max(self._slo_s - alone_s, _LEAST_SPARE * alone_s))
        # The divisor has a lower bound: steps that were fast by chance must not let in a whole prompt.
        num_tokens = min(spare_s / max(token_s, alone_s / self._most), self._most)
        return max(round(num_tokens), _FEWEST_TOKENS)

    def draft_price(self, outlook: Outlook) -> float:
        """Cost of one more row in the step, as a fraction of what the step yields: one token for each stream."""
        if not outlook.num_streams:
            return NO_DRAFTS
        alone_s = self._costs.predict(_regressors(outlook.num_streams, 0, outlook.num_attended))
        _, streams_s, _, attended_s = self._costs.weights
        row_s = streams_s / _STREAMS + attended_s * outlook.num_attended / outlook.num_streams / _ATTENDED
        if alone_s <= 0 or row_s <= 0:
            return _FIRST_PRICE if outlook.num_streams == 1 else NO_DRAFTS
        return max(outlook.num_streams * row_s / alone_s, _LEAST_PRICE)

    def observe(self, batch: Batch, *, step_s: float, compute_s: float) -> None:
        """Updates the costs by the wall time of the whole step: the streams wait for its planning too."""
        if not batch.num_tokens:
            return
        # A step that took more than twice the time of steps like it was delayed by the machine's other work.
        self._costs.update(_regressors_of(batch), step_s, outlier_ratio=2.0)
        # Steps with short contexts say little about attention, but a longer context never makes a step faster.
        *costs, attended_s = self._costs.weights
        self._costs.weights = (*costs, max(attended_s, 0.0))


def _regressors_of(batch: Batch) -> Vector:
    # A draft token takes the same path through the model as a stream's token, up to the logits.
    num_streams = sum(len(span.token_ids) for span in batch.spans if span.is_stream)
    num_attended = sum(len(span.token_ids) * (span.first + span.end) // 2 for span in batch.spans)
    return _regressors(num_streams, batch.num_tokens - num_streams, num_attended)


def _regressors(num_streams: int, num_tokens: int, num_attended: int) -> Vector:
    """[fixed, streams, prompt tokens, attended tokens] in their units; a step without streams has no fixed part."""
    fixed = 1.0 if num_streams else 0.0
    return fixed, num_streams / _STREAMS, num_tokens / _TOKENS, num_attended / _ATTENDED
