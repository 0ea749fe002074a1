"""Where a turn may run: a deployment, and a pool of its workers. Knows no account."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """A pool of a deployment's workers; an empty pool means the shared ones."""

    deployment: str
    pool: str = ""

    @property
    def fleet(self) -> str:
        """The name of its account."""
        return f"{self.deployment}/{self.pool}"
