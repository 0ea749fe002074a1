"""Log probabilities of the tokens that a step draws: the model's own, of the rows as they came."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from axon.engine.batch import Drawn
from axon.engine.cuda.sample.prompt_scores import ROWS, score
from axon.engine.cuda.sample.sending import send_list
from axon.engine.cuda.sample.special import Special


@dataclass(slots=True)
class DrawnScores:
    """Log probabilities for those draws of a step that ask for them, on their way to the host: there once the step's
    event has come."""

    rows: list[int]
    num_top: list[int]
    """For each row, how many of the most likely tokens are asked for."""
    logits: torch.Tensor
    """A copy of these rows, taken before any was masked."""
    first_place: int
    """Index of the first row's token among all drawn tokens."""
    _numbers: torch.Tensor | None = None

    @classmethod
    def of(cls, specials: Sequence[Special], logits: torch.Tensor, first_place: int) -> "DrawnScores":
        """The scores for these draws."""
        num_top = [special.draw.sampling.logprobs or 0 for special in specials]
        return cls([special.row for special in specials], num_top, logits, first_place)

    def score(self, sampled: torch.Tensor) -> None:
        """Begins to score the tokens that were drawn; ``sampled`` has them by row."""
        logits, most = self.logits, max(self.num_top)
        tokens = sampled[send_list(self.rows, torch.int64, logits.device)]
        parts = [score(logits[at : at + ROWS], tokens[at : at + ROWS], most) for at in range(0, len(logits), ROWS)]
        self._numbers = torch.cat(parts).to("cpu", non_blocking=True)

    def by_place(self, tokens: Sequence[int]) -> dict[int, Drawn]:
        """The results, by the index of their tokens among all drawn ones."""
        assert self._numbers is not None, "the step has landed"
        found: dict[int, Drawn] = {}
        for row, num_top, (logprob, _, *rest) in zip(self.rows, self.num_top, self._numbers.tolist(), strict=True):
            ids, logprobs = rest[: len(rest) // 2], rest[len(rest) // 2 :]
            top = tuple((int(id), each) for id, each in zip(ids[:num_top], logprobs[:num_top], strict=True))
            found[self.first_place + row] = Drawn(tokens[self.first_place + row], logprob, top)
        return found
