"""The classes of a classification model: their names, and how its logits become probabilities. Knows no weights."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Activation(StrEnum):
    """The function from logits to scores."""

    SOFTMAX = "softmax"
    """One class is true: the scores are probabilities that sum to 1."""
    SIGMOID = "sigmoid"
    """Each class is true or not by itself: the scores are independent probabilities."""
    NONE = "none"
    """The scores are the logits, as of a model that was trained for regression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes:
    """The classes of a model with a classification head, in the order of its logits."""

    labels: tuple[str, ...]
    activation: Activation

    @property
    def is_one(self) -> bool:
        """Whether there is a single score, as cross-encoders have: they read two texts together."""
        return len(self.labels) == 1

    def scores(self, logits: Sequence[float]) -> list[float]:
        """The scores of the classes, finite for finite logits of any size."""
        match self.activation:
            case Activation.SOFTMAX:
                peak = max(logits)
                weights = [math.exp(each - peak) for each in logits]
                total = math.fsum(weights)
                return [weight / total for weight in weights]
            case Activation.SIGMOID:
                return [_sigmoid(each) for each in logits]
        return list(logits)


def _sigmoid(logit: float) -> float:
    """1 / (1 + e^-x), without an overflow for large negative logits."""
    if logit >= 0:
        return 1 / (1 + math.exp(-logit))
    grown = math.exp(logit)
    return grown / (1 + grown)
