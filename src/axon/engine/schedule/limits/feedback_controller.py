"""Sets the chunk size on a GPU by feedback from the last step's time. Reads no clock.

There is no linear cost model here: a step with a prompt runs other kernels than one without, so a small chunk would
look expensive per token and stay small. Instead the controller scales the chunk by the ratio of the allowed time to
the measured one. A step also has a fixed time, so a chunk that grows by this ratio never overshoots, and one that is
too large comes down within a few steps. The first chunk is one that a model of 8B computes in about 50 ms, because
nothing is measured yet; a smaller model's grows from there.
"""

from math import inf

from axon.engine.batch import Batch
from axon.engine.drafts import NOTHING_DRAFTED, Drafted
from axon.engine.schedule.limits.controller import Forecast, StepLimits
from axon.engine.schedule.limits.device_drafts import DeviceDrafts

_FEWEST_TOKENS = 256  # smaller chunks cost a step nearly as much
_FIRST_TOKENS = 2048
_GRAIN = 64  # whole tiles of the kernels
_LEAST_USED = 0.8  # of the allowed time; the chunk grows only when the step took less
_AIM = 0.95  # of the allowed time
_MOST_CHANGE = 2.0  # per step, which may have been slow or fast by chance


class FeedbackController:
    """Keeps the time between two tokens of a stream within ``slo_s``, as far as prompts lengthen it."""

    def __init__(self, *, max_prefill_tokens: int, slo_s: float, drafts: DeviceDrafts | None = None) -> None:
        """``drafts`` decides which steps have drafts; None for none."""
        self.chunk = max_prefill_tokens if slo_s == inf else min(_FIRST_TOKENS, max_prefill_tokens)
        """Prompt tokens of a step that has streams."""
        self._most = max_prefill_tokens
        self._fewest = min(_FEWEST_TOKENS, max_prefill_tokens)
        self._slo_s = slo_s
        self._drafts = drafts

    def limits(self, forecast: Forecast) -> StepLimits:
        """The present chunk, and drafts where they save time."""
        if self._drafts is None:
            return StepLimits(max_prefill_tokens=self.chunk)
        return self._drafts.limits(forecast, self.chunk)

    def observe(self, batch: Batch, *, step_s: float, compute_s: float, drafted: Drafted = NOTHING_DRAFTED) -> None:
        """Adapts the chunk to the device's time; only a step with both streams and a whole chunk says anything."""
        if self._drafts is not None:
            self._drafts.observe(batch, compute_s=compute_s, drafted=drafted)
        streams = [span for span in batch.spans if span.is_stream]
        num_streams, num_prompt = len(streams), batch.num_tokens - sum(len(span.token_ids) for span in streams)
        # A much smaller piece says little about a whole chunk; a larger one was planned before the chunk shrank.
        if not num_streams or not self.chunk / 1.5 <= num_prompt <= self.chunk * 1.5:
            return
        if _LEAST_USED * self._slo_s <= compute_s <= self._slo_s:
            return
        ratio = min(max(_AIM * self._slo_s / compute_s, 1 / _MOST_CHANGE), _MOST_CHANGE)
        tokens = int(num_prompt * ratio) // _GRAIN * _GRAIN
        self.chunk = min(max(tokens, self._fewest), self._most)
