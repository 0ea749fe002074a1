"""What opens with a key: the key itself, its tenant and that one's plan, as they stood when they were read. Pure."""

from dataclasses import dataclass

from axon.domain.key import Key
from axon.domain.tenant import Plan, Tenant, Terms, terms_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A key with all that belongs to it."""

    key: Key
    tenant: Tenant
    """As if it said nothing, where only its keys are known."""
    plan: Plan | None = None

    def terms(self, defaults: Terms) -> Terms:
        """What holds for its requests."""
        return terms_of(self.tenant, self.plan, defaults)
