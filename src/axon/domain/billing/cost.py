"""What a turn costs: its usage times the rates that held when it was accepted. Exact: integers, no floats.

Amounts are counted in nanos, billionths of the currency's unit. A turn's cost is rounded once, to the nearest nano, so
that the sum of costs is the cost of the sum up to half a nano for each turn.
"""

from dataclasses import dataclass

from axon.domain.billing.usage import Usage

NANOS = 1_000_000_000
"""Nanos in one unit of a currency."""
_PER = 1_000_000
"""Tokens that a rate is for."""
_MOST = 2**63 - 1
"""The largest amount of one turn: a database's integers have 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Figures of a price, in nanos per million tokens. A job carries them, so that its cost needs no registry."""

    prompt: int = 0
    """The figure for prompt tokens that were not found in the prefix cache."""
    cached: int = 0
    """The figure for prompt tokens that were found in the prefix cache."""
    output: int = 0
    """The figure for tokens of the answer."""
    currency: str


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount of money. Units and nanos are apart, so that a large sum needs no integer beyond 64 bits on a wire."""

    units: int
    nanos: int
    """Below one unit."""
    currency: str

    @classmethod
    def of(cls, nanos: int, currency: str) -> "Amount":
        """The amount of so many nanos in all."""
        return cls(*divmod(nanos, NANOS), currency)

    @property
    def total_nanos(self) -> int:
        return self.units * NANOS + self.nanos

    @property
    def text(self) -> str:
        """The number of the currency's units, as exact decimal text."""
        return f"{self.units}.{self.nanos:09d}".rstrip("0").rstrip(".")

    def shown(self) -> dict[str, str]:
        """The amount in JSON. The number is text, because a reader's floats do not hold every amount exactly."""
        return {"amount": self.text, "currency": self.currency}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of one turn."""

    price: str
    """Id of the price that held when the turn was accepted."""
    amount: Amount


def amount_of(usage: Usage, rates: Rates) -> Amount:
    """The amount of a usage at these rates; a half nano is rounded up."""
    cached = min(usage.cached_tokens, usage.prompt_tokens)
    computed = usage.prompt_tokens - cached
    whole = computed * rates.prompt + cached * rates.cached + usage.output_tokens * rates.output
    return Amount.of(min((whole + _PER // 2) // _PER, _MOST), rates.currency)
