"""Prices of a version's tokens, dated: a turn is billed at the price that held when it was accepted."""

from dataclasses import dataclass
from decimal import Decimal

from axon.domain.billing.cost import NANOS, Rates


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of a model's tokens from a time on, until a later price."""

    id: str
    model: str
    version: str = ""
    """Id of the version that it holds for; empty for every version of the model without a price of its own."""
    prompt: float = 0.0
    """Per million prompt tokens that were computed."""
    cached: float = 0.0
    """Per million prompt tokens that were found in the cache."""
    output: float = 0.0
    """Per million tokens of answers."""
    inputs: float = 0.0
    """Per million inputs of embeddings."""
    currency: str = "USD"
    since: float
    """Unix time from which it holds."""
    revision: int = 1

    @property
    def rates(self) -> Rates:
        """Its figures for tokens, in nanos per million."""
        return Rates(
            prompt=_nanos(self.prompt), cached=_nanos(self.cached), output=_nanos(self.output), currency=self.currency
        )


def _nanos(units: float) -> int:
    """The figure as it was written in decimals, not as the binary number next to it."""
    return round(Decimal(str(units)) * NANOS)
