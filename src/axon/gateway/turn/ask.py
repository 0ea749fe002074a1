"""A request for a turn, as everything below HTTP sees it: its tenant, terms and tier. Knows no HTTP and no prompt."""

from dataclasses import dataclass, field, replace

from axon.admission.admission import Entrant
from axon.admission.meters import Meters
from axon.admission.place import Place
from axon.domain.tenants.tenant import Terms, Tier


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
    others: tuple[Place, ...] = ()
    """Fallbacks of the deployment that may answer in its place while it is full, in this order."""
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
    arrived: float = 0.0
    """Unix time at which the request arrived; 0 where nobody noted it."""
    meters: Meters = field(default_factory=Meters)
    """The tenant's limits and what is left of each; admission fills them in."""


def asked_at(ask: Ask, place: Place) -> Ask:
    """The request, asked of one place alone."""
    return replace(ask, deployment=place.deployment, pool=place.pool, others=())


def entrant_of(ask: Ask, job_id: str) -> Entrant:
    """The request, as admission sees it."""
    return Entrant(
        job_id=job_id,
        tenant=ask.tenant,
        terms=ask.terms,
        deployment=ask.deployment,
        tier=ask.tier,
        pool=ask.pool,
        others=ask.others,
        num_bytes=ask.num_bytes,
    )
