"""A step that was launched on the device, until its tokens are on the host. Launches nothing itself."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

import torch

from axon.engine.batch import Drawn, Span
from axon.engine.cuda.sample.drawn_scores import DrawnScores
from axon.engine.cuda.sample.prompt_scores import ScoredRows


@dataclass(slots=True)
class CudaFlight:
    """A launched step; ``land`` waits for it."""

    finish: Callable[[], Callable[[], list[int]]]
    """Launches what is left of the step; returns a function that waits for the drawn tokens and returns them."""
    places: list[int]
    """Index of each draw's token among the drawn tokens, in the order of the batch."""
    drawn_scores: Sequence[DrawnScores]
    """The log probabilities that draws ask for."""
    place_of: dict[int, int]
    """Index of a sequence's first token among the drawn tokens, by the sequence's arrival."""
    spans: Sequence[Span] = ()
    """The batch's spans in order, given where some of their prompt tokens are scored."""
    scored: Sequence[ScoredRows] = ()
    """The results of the scores; a span that was computed in halves has several."""
    _fetch: Callable[[], list[int]] | None = None
    _tokens: list[int] | None = None

    def launch_rest(self) -> None:
        """Launches what is left of the step, once."""
        if self._fetch is None:
            self._fetch = self.finish()

    def land(self) -> list[Drawn]:
        """The result of each draw of the batch, in order."""
        tokens = self._arrived()
        with_scores: dict[int, Drawn] = {}
        for each in self.drawn_scores:
            with_scores |= each.by_place(tokens)
        drawn = [with_scores.get(place) or Drawn(tokens[place]) for place in self.places]
        return self._with_scores(drawn) if self.spans else drawn

    def _with_scores(self, drawn: list[Drawn]) -> list[Drawn]:
        """The results with those of the scores, which go before the draw of the same span."""
        scored: dict[int, list[Drawn]] = {}
        for rows in self.scored:
            for arrival, results in rows.by_arrival().items():
                scored.setdefault(arrival, []).extend(results)
        rest, together = iter(drawn), list[Drawn]()
        for span in self.spans:
            together += scored.get(span.arrival, ())
            together += islice(rest, len(span.drawn))
        return together

    def token_of(self, arrival: int) -> int:
        """The token that the step drew for a sequence."""
        return self._arrived()[self.place_of[arrival]]

    def _arrived(self) -> list[int]:
        self.launch_rest()
        if self._tokens is None:
            assert self._fetch is not None
            self._tokens = self._fetch()
        return self._tokens


def wait_for(tokens: torch.Tensor, arrived: Callable[[], None]) -> list[int]:
    """Waits for the copy of the tokens to the host by calling ``arrived``, and returns them."""
    arrived()
    numbers: list[int] = tokens.tolist()
    return numbers
