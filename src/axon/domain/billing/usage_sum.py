"""Sums of usage and cost over turns. Values only; a store sums."""

from dataclasses import dataclass, field, replace

from axon.domain.billing.cost import Amount
from axon.domain.billing.replica_use import ReplicaSum
from axon.domain.billing.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSum:
    """Sum of the usage of a tenant's ended turns."""

    tenant: str
    day: str = ""
    """``2026-11-15`` in UTC, the day on which they ended; empty where the sum is over all days."""
    model: str = ""
    """The deployment that was asked; empty where the sum is over all of them."""
    num_turns: int
    usage: Usage
    costs: tuple[Amount, ...] = ()
    """What they cost, one amount for each currency, sorted by it; empty when none of them had a price."""
    replicas: ReplicaSum = field(default_factory=ReplicaSum)
    """Replicas' time that the tenant pays for beside its turns."""

    @property
    def of(self) -> tuple[str, str, str]:
        """The tenant, day and model that it is of."""
        return self.tenant, self.day, self.model

    def plus(self, other: "UsageSum") -> "UsageSum":
        """The sum of both, which are of one tenant, day and model and of different currencies."""
        mine, more = self.usage, other.usage
        return replace(
            self,
            num_turns=self.num_turns + other.num_turns,
            usage=Usage(
                prompt_tokens=mine.prompt_tokens + more.prompt_tokens,
                cached_tokens=mine.cached_tokens + more.cached_tokens,
                output_tokens=mine.output_tokens + more.output_tokens,
            ),
            costs=(*self.costs, *other.costs),
        )
