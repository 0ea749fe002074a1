"""How many prompt tokens a GPU's step may take on while answers stream. Reads no clock.

What a step costs there is not learned in parts: one with a prompt takes another way than one without, so that a small
chunk would look dear by the token, and stay small. A step that took too long halves the chunk; one that took less than
half of what it may doubles it again.
"""

from axon.engine.batch import Batch

_FEWEST_TOKENS = 256  # fewer cost a step nearly as much


class Throttle:
    """Keeps the time between two tokens of a stream within ``slo_s``, as far as prompts are what lengthens it."""

    def __init__(self, *, max_prefill_tokens: int, slo_s: float) -> None:
        self.chunk = max_prefill_tokens
        """Prompt tokens of a step that has streams."""
        self._most = max_prefill_tokens
        self._fewest = min(_FEWEST_TOKENS, max_prefill_tokens)
        self._slo_s = slo_s

    def observe(self, batch: Batch, step_s: float) -> None:
        """Takes in how long a step took; only one with both streams and a chunk says anything of it."""
        num_streams = sum(span.is_stream for span in batch.spans)
        num_prompt = batch.num_tokens - num_streams
        # A smaller piece says little of a whole chunk, and a larger one was planned before the chunk was halved.
        if not num_streams or not self.chunk / 2 <= num_prompt <= self.chunk * 1.5:
            return
        if step_s > self._slo_s:
            self.chunk = max(self.chunk // 2, self._fewest)
        elif step_s < self._slo_s / 2:
            self.chunk = min(self.chunk * 2, self._most)
