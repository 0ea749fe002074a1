"""Which deployment answers a turn, where the asked one names others to use while it is unavailable or full.

Functions of what this gateway knows of them. Knows no request and no pin but by its version.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

from axon.admission.place import Place
from axon.domain.registry.served import RUNNING
from axon.domain.session.pin import Known
from axon.gateway.offers.offer import Offer
from axon.gateway.offers.offers import Wanted


def is_available(offer: Offer, pool: str = "") -> bool:
    """Whether a deployment has a version, and has had a worker within its patience and has one in the tenant's pool; or
    is cold, and is likely to start within its patience with cold starts."""
    if not offer.is_known:
        return False
    running = [member.version for member in offer.deployment.members if member.state in RUNNING]
    absent_s = min(map(offer.fleet.absent_s, running), default=math.inf)
    is_there = absent_s <= offer.deployment.patience_s and offer.fleet.has_pool(pool)
    return is_there or offer.starts_in_time()


def places(wanted: Wanted, pool: str) -> tuple[Place, ...]:
    """Where a turn may be admitted, in this order. ``pool`` is the one that its tenant's terms name.

    Without fallbacks, or when none of them is available either, that is the asked deployment: the turn waits for its
    workers. One version is asked of its own deployment only. Raises ``Unavailable`` if nobody can take the turn.
    """
    if wanted.fallbacks and not wanted.version:
        found = tuple(_available(wanted, pool))
        if found:
            return found
        if not wanted.offer.is_known:
            raise wanted.offer.problem()
    return (Place(wanted.offer.name, wanted.offer.pool(pool)),)


def _available(wanted: Wanted, pool: str) -> Iterator[Place]:
    for offer in (wanted.offer, *wanted.fallbacks):
        if is_available(offer, pool):
            yield Place(offer.name, offer.pool(pool))


def offer_at(wanted: Wanted, deployment: str) -> Offer:
    """The asked deployment, or the fallback of this name."""
    return next(each for each in (wanted.offer, *wanted.fallbacks) if each.name == deployment)


def holder_of(version: str, wanted: Wanted, at: Offer) -> Offer:
    """The deployment that answers a session which is pinned to a version: where its turn was admitted, if that has the
    version, else the first one that has it."""
    offers = (at, wanted.offer, *wanted.fallbacks)
    return next((each for each in offers if each.deployment.member(version)), at)


def known_among(wanted: Wanted, at: Offer) -> Known:
    """What is known of the versions that a session may be pinned to: those of the asked deployment and its fallbacks.

    ``at`` is the deployment at which the turn was admitted. If that is a fallback, sessions leave the asked one.
    """
    known = replace(wanted.offer.known(), elsewhere=wanted.elsewhere)
    for offer in wanted.fallbacks:
        known = _with(known, offer)
    if at is wanted.offer:
        return known
    own = {member.version for member in wanted.offer.deployment.members}
    return replace(known, left=frozenset(each for each in own if not at.deployment.member(each)))


def _with(known: Known, offer: Offer) -> Known:
    """With the versions of one more deployment; those that it has no worker for count as absent for ever."""
    other = offer.known()
    is_away = not is_available(offer)
    absent = {each for each in other.states if is_away or other.absent_s.get(each, 0.0) > other.patience_s}
    return replace(
        known,
        states={**other.states, **known.states},
        absent_s={**{each: math.inf for each in absent if each not in known.states}, **known.absent_s},
        marks={**other.marks, **known.marks},
        removed=known.removed - other.states.keys(),
    )
