"""Looks at servers, for the tests of what is made of them."""

from axon.domain.histogram import BOUNDS, bucket_of
from axon.domain.overview import (
    ControlLook,
    Durations,
    GatewayLook,
    ModelLook,
    Overview,
    QueueLook,
    TenantLook,
    VersionLook,
    WorkerLook,
)
from axon.domain.presence import GpuUse, TenantActivity


def counts(*seconds: float) -> tuple[int, ...]:
    """Durations by bucket."""
    found = [0] * (len(BOUNDS) + 1)
    for each in seconds:
        found[bucket_of(each)] += 1
    return tuple(found)


def tenant(name: str, running: int = 0, prompt: int = 0, answer: int = 0) -> TenantActivity:
    return TenantActivity(tenant=name, running=running, prompt_tokens=prompt, answer_tokens=answer)


def worker(
    name: str = "w1",
    *,
    at: float = 100.0,
    model: str = "small",
    running: int = 0,
    answer: int = 0,
    prompt: int = 0,
    requests: int = 0,
    tenants: tuple[TenantActivity, ...] = (),
    ttft: tuple[int, ...] = (),
    gaps: tuple[int, ...] = (),
    kv: float | None = None,
    zone: str = "",
    draining: bool = False,
    age_s: float = 0.5,
    gpus: tuple[GpuUse, ...] = (),
    life: int = 1,
) -> WorkerLook:
    return WorkerLook(
        name=name,
        incarnation=f"{name}-life-{life}",
        model=model,
        version="v1",
        zone=zone,
        draining=draining,
        at=at,
        age_s=age_s,
        slots=8,
        free_slots=8 - running,
        running=running,
        requests=requests,
        prompt_tokens=prompt,
        answer_tokens=answer,
        kv_use=kv,
        ttft_counts=ttft,
        gap_counts=gaps,
        tenants=tenants,
        gpus=gpus,
    )


def model(name: str = "small", *, state: str = "ready", workers: int = 1, wanted: int | None = None) -> ModelLook:
    versions = (VersionLook(version="v1", state="ready", workers=workers, is_stable=True),)
    return ModelLook(name=name, state=state, versions=versions, workers=workers, wanted=wanted)


def gateway(
    name: str = "gateway-1",
    *,
    up_s: float = 10.0,
    requests: dict[str, int] | None = None,
    rejected: int = 0,
    ttft: tuple[int, ...] = (),
    streams: int = 0,
    sockets: int = 0,
) -> GatewayLook:
    return GatewayLook(
        name=name,
        version="1.2",
        up_s=up_s,
        streams=streams,
        sockets=sockets,
        requests=requests or {},
        rejected=rejected,
        ttft=Durations(bounds=(0.1, 1.0), counts=ttft),
        gaps=Durations(bounds=(0.1, 1.0), counts=()),
    )


def overview(
    *workers: WorkerLook,
    at: float = 100.0,
    of: GatewayLook | None = None,
    models: tuple[ModelLook, ...] | None = None,
    queues: tuple[QueueLook, ...] = (),
    tenants: tuple[TenantLook, ...] = (),
    num_models: int | None = None,
    control: ControlLook | None = None,
    problems: tuple[str, ...] = (),
) -> Overview:
    known = models if models is not None else tuple(model(name) for name in sorted({each.model for each in workers}))
    return Overview(
        at=at,
        gateway=of or gateway(),
        bounds=BOUNDS,
        workers=workers,
        num_workers=len(workers),
        models=known,
        num_models=len(known) if num_models is None else num_models,
        queues=queues,
        num_queues=len(queues),
        tenants=tenants,
        num_tenants=len(tenants),
        control=control,
        problems=problems,
    )
