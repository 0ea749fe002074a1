"""The log probabilities of a prompt's own tokens, where a request asks for them. Knows no blocks and no slots.

A model gives the log probability of a token in the row of the token before it. So a prompt is scored by draws whose
token is given: nothing is sampled, the runner only reports how likely the given token was.
"""

from axon.domain.sampling import Sampling
from axon.engine.batch import Draw, Drawn, Span
from axon.engine.protocol.messages import Add, Scored

MAX_SCORED_TOKENS = 64
"""Most tokens that a step scores, where each needs a row of logits as wide as the vocabulary at the same time."""


class PromptScores:
    """Progress of scoring one sequence's prompt: each token from the second on is scored once, in order."""

    def __init__(self, add: Add) -> None:
        self._id = add.id
        self._prompt_ids = add.prompt_ids
        asked = add.sampling
        num_top = (asked.logprobs or 0) if asked.prompt_top is None else asked.prompt_top
        self._sampling = Sampling(max_tokens=1, temperature=0.0, logprobs=num_top)
        self._num_scored = 0

    def draws(self, first: int, end: int) -> tuple[Draw, ...]:
        """The scoring draws of a span over the positions ``first`` to ``end``."""
        num_prompt = len(self._prompt_ids)
        if end > num_prompt:
            return ()  # the span is of the answer, before which the whole prompt was scored
        positions = range(max(first, self._num_scored), min(end, num_prompt - 1))
        return tuple(
            Draw(sampling=self._sampling, seed=0, choice=0, position=0, given=self._prompt_ids[position + 1])
            for position in positions
        )

    def take(self, span: Span, drawn: list[Drawn]) -> Scored:
        """Takes in the results of a span's scoring draws; they hold even if the sequence was parked meanwhile."""
        assert self._num_scored == span.end - len(span.draws), "each token is scored once, in order"
        self._num_scored += len(drawn)
        return Scored(self._id, [(each.logprob or 0.0, each.rank or 1, list(each.top)) for each in drawn])


def scores_of(add: Add) -> PromptScores | None:
    """The scores that a request asks for; a replay with output tokens had them reported before its first token."""
    return PromptScores(add) if add.sampling.prompt_logprobs and not add.output_ids else None
