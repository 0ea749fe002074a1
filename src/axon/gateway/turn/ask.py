"""A request for a turn, as everything below HTTP sees it: who asks, and on which terms."""

from dataclasses import dataclass, field

from axon.admission.meters import Meters
from axon.domain.tenant import Terms, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Who asks for a turn, and on which terms."""

    prefix: str
    """The beginning of the turn's id, which differs between APIs."""
    tenant: str
    terms: Terms = field(default_factory=Terms)
    tier: Tier = Tier.DEFAULT
    pool: str = ""
    num_bytes: int = 0
    """Size of the request's body: a guess at the prompt before there is one."""
    keeps: bool = False
    """The turn is retained: it needs room in the tenant's quota of what is stored."""
    reader_grace_s: float | None = None
    """Seconds for which it goes on without a reader; None for as long as the server allows."""
    idempotency_key: str = ""
    body_digest: str = ""
    meters: Meters = field(default_factory=Meters)
    """What is left of the tenant's limits; filled in on the way."""
