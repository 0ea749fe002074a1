"""Estimates how often drafts are accepted: a ratio of counts that forget, with a prior. No I/O, no clock."""


class Acceptance:
    """Accepted and tried drafts; recent ones weigh most, and the prior counts while there are few."""

    def __init__(self, *, prior: float = 0.5, strength: float = 2.0) -> None:
        """``prior`` is the rate before anything is known, which weighs as much as ``strength`` tried drafts."""
        self.num_accepted = self.num_tried = 0.0
        self._prior, self._strength = prior, strength

    @property
    def rate(self) -> float:
        """Estimated probability that a draft is accepted if those before it were."""
        return self.rate_from(self._prior)

    def rate_from(self, prior: float) -> float:
        """The same with another prior."""
        return (self.num_accepted + self._strength * prior) / (self.num_tried + self._strength)

    def forget(self, factor: float) -> None:
        """Multiplies what was learned so far by a factor below 1, so that what comes weighs more."""
        self.num_accepted *= factor
        self.num_tried *= factor

    def learn(self, *, num_drafted: int, num_accepted: int) -> None:
        """Takes in how many drafts were accepted; those behind the first wrong one were not tried."""
        self.num_accepted += num_accepted
        self.num_tried += min(num_accepted + 1, num_drafted)
