"""How many prompt tokens a step may take on while answers stream, learned from how long steps took. Reads no clock.

A step's time is about a part of its own, so much for each stream, for each prompt token, and for each token that these
attend to; the chunk is what fits into the slowdown that the streams are to bear, and into the time that may pass
between two of their tokens. Chunks change no token, so that what is learned may differ from run to run.
"""

from dataclasses import dataclass
from math import inf

from axon.engine.batch import Batch

_FIRST_TOKENS = 8  # while nothing is known
_FEWEST_TOKENS = 1  # so that a prompt always goes on
_LEAST_SPARE = 0.1  # of the streams' own time, for prompts, where these take longer than they may without any
_KEPT = 0.97  # of what was learned of the like of a step before it
_FIRST_DOUBT = 100.0
_FIRST_PRICE, _LEAST_PRICE = 0.3, 0.05  # of a guess: while nothing is known, and ever
# Units of a step's parts that take about as long: streams, prompt tokens, tokens attended to.
_STREAMS, _TOKENS, _ATTENDED = 8, 8, 16_384

Parts = tuple[float, float, float, float]
"""Of a step, in units: its own, streams, prompt tokens, tokens attended to."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a step has to do without any prompt, and where the next prompt stands."""

    num_streams: int = 0
    num_attended: int = 0
    """Tokens that the streams attend to, together."""
    prompt_at: int = 0
    """Tokens before the next one of the prompt that is prefilled."""


class Pace:
    """Least squares over the newest steps, which follow the machine and its load."""

    def __init__(self, *, max_prefill_tokens: int, max_slowdown: float, slo_s: float = inf) -> None:
        self._most = max_prefill_tokens
        self._spare = max_slowdown - 1
        self._slo_s = slo_s
        self._cost_s: Parts = (0.0, 0.0, 0.0, 0.0)
        """Of a unit of each part."""
        self._doubt: tuple[Parts, ...] = tuple(_axis(i, _FIRST_DOUBT) for i in range(4))
        """How much a surprise may change of each cost, and of pairs of them."""

    def num_prefill_tokens(self, outlook: Outlook) -> int:
        """The chunk of a step that has these streams."""
        alone_s = _dot(self._cost_s, _parts(outlook.num_streams, 0, outlook.num_attended))
        token_s = _dot(self._cost_s, _parts(0, 1, outlook.prompt_at))
        if alone_s <= 0 or not self._cost_s[2]:
            return min(_FIRST_TOKENS, self._most)
        spare_s = min(self._spare * alone_s, max(self._slo_s - alone_s, _LEAST_SPARE * alone_s))
        # Never nothing: steps that were quick by chance must not let in a whole prompt.
        num_tokens = min(spare_s / max(token_s, alone_s / self._most), self._most)
        return max(round(num_tokens), _FEWEST_TOKENS)

    def draft_price(self, outlook: Outlook) -> float:
        """What one more row in a step costs, as a share of what the step gives: a token for each of its streams."""
        if not outlook.num_streams:
            return 1.0
        parts = _parts(outlook.num_streams, 0, outlook.num_attended)
        alone_s, row_s = _dot(self._cost_s, parts), self._cost_s[1] / _STREAMS
        row_s += self._cost_s[3] * outlook.num_attended / outlook.num_streams / _ATTENDED
        if alone_s <= 0 or row_s <= 0:
            return _FIRST_PRICE if outlook.num_streams == 1 else 1.0
        return max(outlook.num_streams * row_s / alone_s, _LEAST_PRICE)

    def observe(self, batch: Batch, step_s: float) -> None:
        """Takes in how long a step took."""
        if not batch.num_tokens:
            return
        parts = _parts_of(batch)
        known_s = _dot(self._cost_s, parts)
        toward = _product(self._doubt, parts)
        doubt = _dot(toward, parts)
        # A step that took far longer than the like of it, because the machine had other work, is one among many.
        surprise_s = (min(step_s, 2 * known_s) if doubt < 1 else step_s) - known_s
        own_s, streams_s, tokens_s, attended_s = _plus(self._cost_s, toward, surprise_s / (1 + doubt))
        # Steps with short pasts say little of it: but a longer past never makes a step quicker.
        self._cost_s = own_s, streams_s, tokens_s, max(attended_s, 0.0)
        # Less doubt of what the step told of. What is forgotten is of the same kind: nothing fades that is not seen.
        kept = _KEPT - (1 - _KEPT) / doubt
        by = kept / (1 + kept * doubt)
        self._doubt = tuple(_plus(row, toward, -each * by) for row, each in zip(self._doubt, toward, strict=True))


def _parts_of(batch: Batch) -> Parts:
    # A guess is a row like a stream's: it has the same way, to the end.
    num_streams = sum(len(span.token_ids) for span in batch.spans if span.is_stream)
    num_attended = sum(len(span.token_ids) * (span.first + span.end) // 2 for span in batch.spans)
    return _parts(num_streams, batch.num_tokens - num_streams, num_attended)


def _parts(num_streams: int, num_tokens: int, num_attended: int) -> Parts:
    own = 1.0 if num_streams else 0.0
    return own, num_streams / _STREAMS, num_tokens / _TOKENS, num_attended / _ATTENDED


def _axis(place: int, value: float) -> Parts:
    first, second, third, fourth = (value if place == i else 0.0 for i in range(4))
    return first, second, third, fourth


def _dot(a: Parts, b: Parts) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]


def _product(rows: tuple[Parts, ...], by: Parts) -> Parts:
    first, second, third, fourth = (_dot(row, by) for row in rows)
    return first, second, third, fourth


def _plus(a: Parts, b: Parts, by: float) -> Parts:
    return a[0] + b[0] * by, a[1] + b[1] * by, a[2] + b[2] * by, a[3] + b[3] * by
