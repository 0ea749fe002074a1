"""Tenants as a metric's label, with a bound. Knows ids only: a million tenants must not become a million series."""

OTHER = "other"


class TenantLabels:
    """The first ``limit`` tenants go by their id, all later ones together as ``other``.

    First come rather than busiest, because a counter that changes its label would run backwards.
    """

    def __init__(self, limit: int = 100) -> None:
        self._limit = limit
        self._known: set[str] = set()

    def label(self, tenant: str) -> str:
        """What to write in the ``tenant`` label."""
        if tenant in self._known:
            return tenant
        if len(self._known) >= self._limit:
            return OTHER
        self._known.add(tenant)
        return tenant
