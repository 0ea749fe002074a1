"""Draft tokens for speculative decoding, looked up in the sequence's own text. Knows no model and no scheduler.

Answers repeat themselves and their prompts, so the drafter proposes what followed the last few tokens when they
occurred before (prompt lookup, or n-gram speculation). A step that computes draft tokens also draws the token behind
each; that token is the one that would have been drawn without drafting, so drafts change no token.

What drafts would have been right about is known without computing any, by comparing them with the tokens that come. So
text that repeats itself is noticed also where a draft is worth its cost only if it is likely to be right.
"""

from axon.engine.schedule.limits.acceptance import Acceptance

_LONGEST, _SHORTEST = 3, 2
"""Lengths of the n-grams that are looked up, in tokens."""
MOST = 8
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
        self._num_followed = 0
        """Tokens that were compared with what it would have drafted."""
        self._guess: int | None = None
        """Position of the token that it would draft next."""
        self._num_right = 0
        """Guesses in a row that were right."""
        self._num_compared = 0
        """Tokens to come that drafts have been compared with already."""

    def draft(
        self, token_ids: list[int], *, price: float, most: int, least_match: int = 0, follows: bool = True
    ) -> list[int]:
        """The tokens that may come next, as many as are likely enough to be accepted.

        ``price`` is the cost of one more token in a step, as a fraction of the value of a certain token. So many of the
        last tokens as ``least_match`` says must have occurred before in a row, and two at least.

        It learns from the tokens that came without drafts too. With a ``least_match`` it does not: a draft behind many
        known tokens is right more often than one behind two. Nor does it if ``follows`` is False, as for a grammar,
        whose forced tokens say nothing about others.
        """
        if not self._walk(token_ids, len(token_ids), learns=follows and not least_match):
            self._acceptance.forget(_DECAY)
        num_drafts = num_worth(self._acceptance.rate, price, min(most, MOST))
        if not num_drafts:
            return []
        position = self._long_match(token_ids, least_match) if least_match else self._guess
        return [] if position is None else token_ids[position : position + num_drafts]

    def learn(self, *, num_drafted: int, num_accepted: int) -> None:
        """Takes in how many drafts were accepted; those behind the first wrong one were not tried."""
        self._acceptance.learn(num_drafted=num_drafted, num_accepted=num_accepted)
        self._num_compared += min(num_accepted + 1, num_drafted)

    def follow(self, token_ids: list[int], num_known: int) -> float:
        """Learns from tokens that came without drafts whether drafts would have been right, and drafts nothing.

        Returns how likely its next guess is right; 0 without one, or before it has been right in this place.
        """
        self._walk(token_ids, num_known, learns=True)
        return self._acceptance.rate if self._num_right else 0.0

    def _walk(self, token_ids: list[int], num_known: int, *, learns: bool) -> int:
        """Compares the tokens that have come since the last call with what it would have drafted in the place of each.

        Returns from how many it has learned: from none that a draft has been compared with already, nor from a prompt.
        """
        num_learned = 0
        for index in range(self._num_followed or num_known, num_known):
            self._aim(token_ids, index)
            if self._guess is not None:
                is_right = token_ids[self._guess] == token_ids[index]
                if learns and not self._num_compared:
                    self._acceptance.forget(_DECAY)
                    self._acceptance.learn(num_drafted=1, num_accepted=int(is_right))
                    num_learned += 1
                self._guess = self._guess + 1 if is_right else None
                self._num_right = self._num_right + 1 if is_right else 0
            self._num_compared = max(0, self._num_compared - 1)
        self._num_followed = max(self._num_followed, num_known)
        self._aim(token_ids, num_known)
        return num_learned

    def _aim(self, token_ids: list[int], end: int) -> None:
        """Looks for the token to guess at position ``end``, unless it goes on in a place where it has been right."""
        if self._guess is None:
            self._index(token_ids, end)
            self._guess = self._position(token_ids, end)

    def _long_match(self, token_ids: list[int], length: int) -> int | None:
        """The position behind the latest occurrence of the last tokens, if ``length`` of them stand there in a row."""
        self._index(token_ids, len(token_ids))
        position = self._position(token_ids, len(token_ids))
        if position is None or token_ids[-length:] != token_ids[max(0, position - length) : position]:
            return None
        return position

    def _position(self, token_ids: list[int], end: int) -> int | None:
        """The position behind an earlier occurrence of the last tokens before ``end``."""
        for length in range(_LONGEST, _SHORTEST - 1, -1):
            position = self._position_after.get(tuple(token_ids[max(0, end - length) : end]))
            if position is not None:
                return position
        return None

    def _index(self, token_ids: list[int], num_known: int) -> None:
        """Indexes the n-grams that are new since the last call, except those that end with the last known token."""
        for end in range(max(self._num_seen, _SHORTEST), num_known):
            for length in range(_SHORTEST, min(_LONGEST, end) + 1):
                self._position_after[tuple(token_ids[end - length : end])] = end
        self._num_seen = max(self._num_seen, num_known)


def num_worth(acceptance_rate: float, price: float, most: int) -> int:
    """Number of drafts in a row that are each worth their price: the third counts only if all three are accepted."""
    num_drafts, probability = 0, acceptance_rate
    while num_drafts < most and probability > price:
        num_drafts += 1
        probability *= acceptance_rate
    return num_drafts
