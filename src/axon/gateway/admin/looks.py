"""Makes the parts of an overview of what the gateway knows. Pure: reads nothing itself."""

from collections import Counter
from collections.abc import Sequence

from axon.admission.line import Line
from axon.admission.place import Place
from axon.domain.fleet.status import FleetStatus, by_deployment
from axon.domain.overview import (
    MAX_VERSIONS,
    ControlLook,
    Durations,
    GatewayLook,
    ModelLook,
    QueueLook,
    TenantLook,
    VersionLook,
    WorkerLook,
)
from axon.domain.presence import Presence
from axon.gateway.offers.offer import Offer
from axon.telemetry.reading import Reading

_REQUESTS, _REJECTED, _SOCKETS = "axon_requests_total", "axon_rejected_total", "axon_sockets"
_TTFT, _GAPS = "axon_time_to_first_token_seconds", "axon_inter_token_latency_seconds"
METRICS = (_REQUESTS, _REJECTED, _SOCKETS, _TTFT, _GAPS)
"""The metrics of which an overview is made."""


def gateway_look(
    reading: Reading, *, name: str, version: str, up_s: float, draining: bool, streams: int
) -> GatewayLook:
    """The gateway itself."""
    return GatewayLook(
        name=name,
        version=version,
        up_s=round(up_s, 3),
        draining=draining,
        streams=streams,
        sockets=int(reading.total(_SOCKETS)),
        requests={outcome: int(num) for outcome, num in sorted(reading.by(_REQUESTS, "outcome").items())},
        rejected=int(reading.total(_REJECTED)),
        ttft=_durations(reading, _TTFT),
        gaps=_durations(reading, _GAPS),
    )


def worker_look(presence: Presence, now: float) -> WorkerLook:
    """One worker."""
    load, service, activity = presence.load, presence.load.service, presence.load.activity
    return WorkerLook(
        name=presence.worker,
        incarnation=presence.incarnation,
        model=presence.deployment.name,
        version=presence.deployment.version,
        pool=presence.pool,
        zone=presence.zone,
        draining=presence.draining,
        at=presence.at,
        age_s=round(max(0.0, now - presence.at), 3),
        slots=load.slots,
        free_slots=load.free_slots,
        running=activity.running,
        num_tokens=load.num_tokens,
        requests=service.jobs,
        prompt_tokens=service.prompt_tokens,
        answer_tokens=service.answer_tokens,
        kv_use=service.kv_use,
        ttft_counts=activity.ttft_counts,
        gap_counts=activity.gap_counts,
        tenants=activity.tenants,
        gpus=activity.gpus,
    )


def model_look(offer: Offer, status: FleetStatus | None) -> ModelLook:
    """One deployment, with what control wants of it where it reports."""
    presences = offer.fleet.presences
    staying = sum(not each.draining for each in presences)
    groups = by_deployment(status.groups).get(offer.name) if status else None
    return ModelLook(
        name=offer.name,
        state=str(offer.listed().state) if offer.is_known else "unknown",
        versions=_versions(offer) if offer.is_known else (),
        workers=staying,
        draining=len(presences) - staying,
        wanted=None if groups is None else sum(each.wanted for each in groups),
        starting=None if groups is None else sum(each.starting for each in groups),
        ready=None if groups is None else sum(each.ready for each in groups),
    )


def control_look(status: FleetStatus | None, now: float) -> ControlLook | None:
    """Control's leader."""
    if status is None:
        return None
    return ControlLook(
        leader=status.leader,
        launcher=status.launcher,
        age_s=round(max(0.0, now - status.at), 3),
        num_replicas=status.num_replicas,
        problem=status.problem,
        held=status.held,
    )


def places_of(offers: Sequence[Offer]) -> list[Place]:
    """Every place that turns may wait for: each deployment's shared pool, and the pools that have workers."""
    return [
        Place(offer.name, pool)
        for offer in offers
        for pool in sorted({"", *(presence.pool for presence in offer.fleet.presences)})
    ]


def queue_looks(places: Sequence[Place], lines: Sequence[Line]) -> tuple[QueueLook, ...]:
    """The lines of the places that were read."""
    return tuple(
        QueueLook(model=place.deployment, pool=place.pool, requests=line.waiting, tokens=round(line.work, 1))
        for place, line in zip(places, lines, strict=False)
    )


def tenant_looks(reading: Reading) -> tuple[TenantLook, ...]:
    """The tenants that the gateway's metrics name, the one with most requests first."""
    requests, rejected = reading.by(_REQUESTS, "tenant"), reading.by(_REJECTED, "tenant")
    found = [
        TenantLook(tenant=name, requests=int(requests.get(name, 0)), rejected=int(rejected.get(name, 0)))
        for name in requests.keys() | rejected.keys()
        if name
    ]
    return tuple(sorted(found, key=lambda each: (-each.requests, each.tenant)))


def _versions(offer: Offer) -> tuple[VersionLook, ...]:
    deployment = offer.deployment
    staying = Counter(each.deployment.version for each in offer.fleet.presences if not each.draining)
    leaving = Counter(each.deployment.version for each in offer.fleet.presences if each.draining)
    return tuple(
        VersionLook(
            version=member.version,
            state=str(member.state),
            workers=staying[member.version],
            draining=leaving[member.version],
            is_stable=member.version == deployment.stable,
        )
        for member in deployment.members[:MAX_VERSIONS]
    )


def _durations(reading: Reading, name: str) -> Durations:
    bounds, counts = reading.buckets(name)
    return Durations(bounds=bounds, counts=counts)
