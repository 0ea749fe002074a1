"""How many prompt tokens a GPU's step may take on while answers stream. Reads no clock.

What a step costs there is not learned in parts: one with a prompt takes another way than one without, so that a small
chunk would look dear by the token, and stay small. The chunk follows the time of the step that had it: by the part that
was too much it gets smaller, by the part that was left it grows. Since a step has a time of its own beside that of its
tokens, a chunk that grows so never takes too long, and one that shrinks so comes down in a few steps.
"""

from axon.engine.batch import Batch

_FEWEST_TOKENS = 256  # fewer cost a step nearly as much
_GRAIN = 64  # whole tiles of the kernels
_LEAST_USED = 0.8  # of the time there is; a chunk that takes less may grow
_AIM = 0.95
_MOST_CHANGE = 2.0  # by one step, which may have been slow or quick by chance


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
        # A smaller piece says little of a whole chunk, and a larger one was planned before the chunk got smaller.
        if not num_streams or not self.chunk / 1.5 <= num_prompt <= self.chunk * 1.5:
            return
        if _LEAST_USED * self._slo_s <= step_s <= self._slo_s:
            return
        by = min(max(_AIM * self._slo_s / step_s, 1 / _MOST_CHANGE), _MOST_CHANGE)
        tokens = int(num_prompt * by) // _GRAIN * _GRAIN
        self.chunk = min(max(tokens, self._fewest), self._most)
