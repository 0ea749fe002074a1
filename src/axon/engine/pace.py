"""How many prompt tokens a step may take on while answers stream, learned from how long steps took. Reads no clock.

A step's time is about a part of its own, so much for each stream and so much for each prompt token; the chunk is what
fits into the slowdown that the streams are to bear. Chunks change no token, so that what is learned may differ from run
to run.
"""

from axon.engine.batch import Batch

_FIRST_TOKENS = 8  # while nothing is known
_FEWEST_TOKENS = 1  # so that a prompt always goes on
_KEPT = 0.95  # of what was learned before, with each step
_MOST_DOUBT = 100.0
# One unit of each part of a step takes about as long as the others': streams and prompt tokens.
_STREAMS, _TOKENS = 8, 32

Parts = tuple[float, float, float]
"""Of a step: its own, streams, prompt tokens."""


class Pace:
    """Least squares over the newest steps, which follow the machine, its load and the contexts."""

    def __init__(self, *, max_prefill_tokens: int, max_slowdown: float) -> None:
        self._most = max_prefill_tokens
        self._spare = max_slowdown - 1
        self._cost_s: Parts = (0.0, 0.0, 0.0)
        """Of a unit of each part."""
        self._doubt: tuple[Parts, Parts, Parts] = ((_MOST_DOUBT, 0, 0), (0, _MOST_DOUBT, 0), (0, 0, _MOST_DOUBT))
        """How much a surprise may change of each cost, and of pairs of them."""

    def num_prefill_tokens(self, num_streams: int) -> int:
        """The chunk of a step beside so many streams."""
        alone_s, token_s = _dot(self._cost_s, _parts(num_streams, 0)), self._cost_s[2] / _TOKENS
        if alone_s <= 0 or not self._cost_s[2]:
            return min(_FIRST_TOKENS, self._most)
        # Never nothing: steps that were quick by chance must not let in a whole prompt.
        num_tokens = round(self._spare * alone_s / max(token_s, alone_s / self._most))
        return min(max(num_tokens, _FEWEST_TOKENS), self._most)

    def observe(self, batch: Batch, step_s: float) -> None:
        """Takes in how long a step took."""
        if not batch.num_tokens:
            return
        num_streams = sum(span.draw is not None and len(span.token_ids) == 1 for span in batch.spans)
        parts = _parts(num_streams, batch.num_tokens - num_streams)
        known_s = _dot(self._cost_s, parts)
        toward = _dot(self._doubt[0], parts), _dot(self._doubt[1], parts), _dot(self._doubt[2], parts)
        doubt = _dot(toward, parts)
        # A step that took far longer than the like of it, because the machine had other work, is one among many.
        surprise_s = (min(step_s, 2 * known_s) if doubt < 1 else step_s) - known_s
        weight = _KEPT + doubt
        own_s, streams_s, tokens_s = (
            cost_s + each * surprise_s / weight for cost_s, each in zip(self._cost_s, toward, strict=True)
        )
        self._cost_s = own_s, streams_s, tokens_s
        self._doubt = self._doubt_after(toward, weight)

    def _doubt_after(self, toward: Parts, weight: float) -> tuple[Parts, Parts, Parts]:
        """Less of what the step told of; a little more of everything, but not without bound of what it did not."""
        left = [[self._doubt[i][j] - toward[i] * toward[j] / weight for j in range(3)] for i in range(3)]
        grown = 1.0 if left[0][0] + left[1][1] + left[2][2] > _MOST_DOUBT else 1 / _KEPT
        first, second, third = ((row[0] * grown, row[1] * grown, row[2] * grown) for row in left)
        return first, second, third


def _parts(num_streams: int, num_tokens: int) -> Parts:
    return (1.0 if num_streams else 0.0), num_streams / _STREAMS, num_tokens / _TOKENS


def _dot(a: Parts, b: Parts) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
