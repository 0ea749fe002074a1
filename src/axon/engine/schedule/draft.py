"""Draft tokens for speculative decoding, looked up in the sequence's own text. Knows no model and no scheduler.

Answers repeat themselves and their prompts, so the drafter proposes what followed the last few tokens when they
occurred before (prompt lookup, or n-gram speculation). A step that computes draft tokens also draws the token behind
each; that token is the one that would have been drawn without drafting, so drafts change no token.
"""

from axon.engine.schedule.acceptance import Acceptance

_LONGEST, _SHORTEST = 3, 2
"""Lengths of the n-grams that are looked up, in tokens."""
_MOST = 8
"""Most draft tokens of a sequence in one step."""
_DECAY = 0.95
"""Factor on the counts of accepted and tried drafts with each token, so that recent ones weigh most."""


class Drafter:
    """Drafts for one sequence, and learns how often its drafts are accepted."""

    def __init__(self) -> None:
        self._position_after: dict[tuple[int, ...], int] = {}
        """For each n-gram, the position behind its latest occurrence."""
        self._num_seen = 0
        self._acceptance = Acceptance()
        """Its rate is one half at first, and again after a while without drafts."""

    def draft(self, token_ids: list[int], *, price: float, most: int) -> list[int]:
        """The tokens that may come next, as many as are likely enough to be accepted.

        ``price`` is the cost of one more token in a step, as a fraction of the value of a certain token.
        """
        self._acceptance.forget(_DECAY)
        num_drafts = _num_worth(self._acceptance.rate, price, min(most, _MOST))
        if not num_drafts:
            return []
        self._index(token_ids)
        for length in range(_LONGEST, _SHORTEST - 1, -1):
            position = self._position_after.get(tuple(token_ids[-length:]))
            if position is not None:
                return token_ids[position : position + num_drafts]
        return []

    def learn(self, *, num_drafted: int, num_accepted: int) -> None:
        """Takes in how many drafts were accepted; those behind the first wrong one were not tried."""
        self._acceptance.learn(num_drafted=num_drafted, num_accepted=num_accepted)

    def _index(self, token_ids: list[int]) -> None:
        """Indexes the n-grams that are new since the last call, except those that end with the last token."""
        for end in range(max(self._num_seen, _SHORTEST), len(token_ids)):
            for length in range(_SHORTEST, min(_LONGEST, end) + 1):
                self._position_after[tuple(token_ids[end - length : end])] = end
        self._num_seen = max(self._num_seen, len(token_ids))


def _num_worth(acceptance_rate: float, price: float, most: int) -> int:
    """Number of drafts in a row that are each worth their price: the third counts only if all three are accepted."""
    num_drafts, probability = 0, acceptance_rate
    while num_drafts < most and probability > price:
        num_drafts += 1
        probability *= acceptance_rate
    return num_drafts
