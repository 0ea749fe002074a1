"""Guesses at what comes next, taken from what stands before. Pure; knows no model and no scheduler.

Answers repeat themselves and what they were asked. A guess is checked in the step that computes it: the token drawn
behind it is the one that would have been drawn without it, so that guessing changes no token.
"""

_LONGEST, _SHORTEST = 3, 2
"""Tokens that must have come before in the same order."""
_MOST = 8
_KEPT = 0.95  # of what was learned, with each token
_PRIOR_RIGHT, _PRIOR = 1.0, 2.0


class Drafter:
    """Of one sequence."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, ...], int] = {}
        """What came after these tokens the last time."""
        self._num_seen = 0
        self._num_right = self._num_tried = 0.0

    @property
    def likely(self) -> float:
        """How often a guess is right of late; half at first, and again after a while without any."""
        return (self._num_right + _PRIOR_RIGHT) / (self._num_tried + _PRIOR)

    def guess(self, token_ids: list[int], *, price: float, most: int) -> list[int]:
        """The tokens that may come next, as many as are likely enough to be right.

        ``price`` is what one more token in a step costs, as a share of what a sure token would be worth.
        """
        self._num_right *= _KEPT
        self._num_tried *= _KEPT
        num_guesses = _num_worth(self.likely, price, min(most, _MOST))
        if not num_guesses:
            return []
        self._see(token_ids)
        for length in range(_LONGEST, _SHORTEST - 1, -1):
            place = self._places.get(tuple(token_ids[-length:]))
            if place is not None:
                return token_ids[place : place + num_guesses]
        return []

    def learn(self, *, num_guessed: int, num_right: int) -> None:
        """What became of the guesses: those behind the first wrong one were not tried."""
        self._num_right += num_right
        self._num_tried += min(num_right + 1, num_guessed)

    def _see(self, token_ids: list[int]) -> None:
        """Notes what came after which tokens; not what comes after the last, which is to be found."""
        for end in range(max(self._num_seen, _SHORTEST), len(token_ids)):
            for length in range(_SHORTEST, min(_LONGEST, end) + 1):
                self._places[tuple(token_ids[end - length : end])] = end
        self._num_seen = max(self._num_seen, len(token_ids))


def _num_worth(likely: float, price: float, most: int) -> int:
    """How many guesses in a row are each worth their price: the third counts only when all three are right."""
    num_guesses, chance = 0, likely
    while num_guesses < most and chance > price:
        num_guesses += 1
        chance *= likely
    return num_guesses
