"""A request for a turn, as everything below HTTP sees it: its tenant, terms and tier. Knows no HTTP and no prompt."""

from dataclasses import dataclass, field

from axon.admission.meters import Meters
from axon.domain.tenant import Terms, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request for a turn: the tenant, the terms that hold for it, and what its headers ask."""

    prefix: str
    """The prefix of the turn's id, which differs between APIs: ``chatcmpl-``, ``resp_``."""
    tenant: str
    terms: Terms = field(default_factory=Terms)
    deployment: str = ""
    """Name of the deployment that it asks."""
    tier: Tier = Tier.DEFAULT
    pool: str = ""
    num_bytes: int = 0
    """Size of the request's body in bytes, from which the prompt's length is estimated before it is tokenised."""
    keeps: bool = False
    """Whether the turn is stored; a stored turn needs room in the tenant's storage quota."""
    reader_grace_s: float | None = None
    """Seconds for which the turn goes on without a reader; None means as long as the server allows."""
    idempotency_key: str = ""
    """The client's Idempotency-Key; empty if it sent none."""
    body_digest: str = ""
    """SHA-256 of the API's name and the body, in hex: a key may be repeated with the same body only."""
    meters: Meters = field(default_factory=Meters)
    """The tenant's limits and what is left of each; admission fills them in."""
