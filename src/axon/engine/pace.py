"""How many prompt tokens a step may take on while answers stream, learned from how long steps took. Reads no clock.

A step's time is about that of its streams alone plus so much for each prompt token; the chunk is what fits into the
slowdown that the streams are to bear. Chunks change no token, so that what is learned may differ from run to run.
"""

from axon.engine.batch import Batch

_FIRST_TOKENS = 8  # while nothing is known
_FEWEST_TOKENS = 1  # so that a prompt always goes on
_NEWEST = 0.25  # share of the newest step in an average


class Pace:
    """Averages that follow the machine, its load and the length of what is attended to."""

    def __init__(self, *, max_prefill_tokens: int, max_slowdown: float) -> None:
        self._most = max_prefill_tokens
        self._spare = max_slowdown - 1
        self._stream_s: float | None = None
        """Of a step without prompt tokens."""
        self._token_s: float | None = None
        """Of one prompt token more."""

    @property
    def num_prefill_tokens(self) -> int:
        """The chunk of the next step."""
        if self._stream_s is None or self._token_s is None:
            return min(_FIRST_TOKENS, self._most)
        num_tokens = int(self._spare * self._stream_s / self._token_s)
        return min(max(num_tokens, _FEWEST_TOKENS), self._most)

    def observe(self, batch: Batch, step_s: float) -> None:
        """Takes in how long a step took."""
        num_streams = sum(span.draw is not None and len(span.token_ids) == 1 for span in batch.spans)
        num_more = batch.num_tokens - num_streams
        if not num_streams:
            return
        if not num_more:
            self._stream_s = _average(self._stream_s, step_s)
        elif self._stream_s is not None:
            # Never nothing: one step that was quick by chance must not let in a whole prompt.
            token_s = max((step_s - self._stream_s) / num_more, self._stream_s / self._most)
            self._token_s = _average(self._token_s, token_s)


def _average(old: float | None, new: float) -> float:
    return new if old is None else (1 - _NEWEST) * old + _NEWEST * new
