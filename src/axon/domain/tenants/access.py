"""Access: a key with its tenant and its tenant's plan, as they stood when they were read. Values only."""

from dataclasses import dataclass

from axon.domain.tenants.key import Key
from axon.domain.tenants.tenant import Plan, Tenant, Terms, terms_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A key, its tenant and the tenant's plan."""

    key: Key
    tenant: Tenant
    """A tenant without limits of its own where the store has keys under this id and no tenant."""
    plan: Plan | None = None

    def terms(self, defaults: Terms) -> Terms:
        """The limits that apply to the tenant's requests."""
        return terms_of(self.tenant, self.plan, defaults)
