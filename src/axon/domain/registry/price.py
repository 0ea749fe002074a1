"""Prices of a version's tokens, dated: a turn is billed at the price that held when it was accepted."""

from dataclasses import dataclass


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
