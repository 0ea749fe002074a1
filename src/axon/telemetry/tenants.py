"""The ``tenant`` label of metrics, with bounded cardinality: a million tenants must not become a million series."""

OTHER = "other"


class TenantLabels:
    """The first ``limit`` tenants are labelled by id, all later ones as ``other``.

    The first rather than the busiest, because a counter that changed its label would decrease.
    """

    def __init__(self, limit: int = 100) -> None:
        self._limit = limit
        self._known: set[str] = set()

    def label(self, tenant: str) -> str:
        """Value of the ``tenant`` label."""
        if tenant in self._known:
            return tenant
        if len(self._known) >= self._limit:
            return OTHER
        self._known.add(tenant)
        return tenant
