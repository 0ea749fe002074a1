"""Builds admission, dispatch and ending from the settings, the same in every process that needs them."""

import contextlib
from collections.abc import Callable

from axon.admission.admission import Admission
from axon.bootstrap.services import Services
from axon.dispatch.affinity import Affinity
from axon.dispatch.dispatch import Dispatch
from axon.domain.job import Job
from axon.domain.turn import Turn
from axon.errors import DependencyDown
from axon.ownership.ending import Ending, Forget, refused_in
from axon.runtime.clock import Clock
from axon.settings import Settings

_CLOCKS_S = 3600.0
"""Seconds past now up to which ended turns count, because another process's clock may be ahead."""


def make_admission(
    settings: Settings,
    services: Services,
    clock: Clock,
    tokens_per_s: Callable[[str, str], float | None] = lambda deployment, pool: None,
    await_more: Callable[[str, str], float] = lambda deployment, pool: 0.0,
) -> Admission:
    """Only a process that admits turns needs to know the throughput of a deployment's pool (``tokens_per_s``), and how
    long a turn may wait for more workers of it (``await_more``)."""

    async def spent(tenant: str, *, since: float) -> int:
        sums = await services.store.usage.sums(since=since, until=clock.now() + _CLOCKS_S, tenant=tenant)
        return sum(each.usage.total_tokens for each in sums)

    return Admission(
        services.live.accounts,
        settings.admission,
        clock,
        spending=spent,
        tokens_per_s=tokens_per_s,
        await_more=await_more,
    )


def make_ending(
    settings: Settings,
    services: Services,
    admission: Admission,
    clock: Clock,
    traced: Callable[[Turn], None] | None = None,
) -> Ending:
    """``traced`` is told of each turn that has ended; None where nothing is traced."""
    forget, is_refused = _forgetting(settings, services), refused_in(services.live.log)
    return Ending(services.journal, admission.settle, clock, forget, is_refused=is_refused, traced=traced)


def make_dispatch(
    settings: Settings,
    services: Services,
    affinity: Affinity | None = None,
    is_ours: Callable[[str], bool] | None = None,
) -> Dispatch:
    """``is_ours`` tells whether a deployment is served here, so that its lanes are declared where they are missing;
    without it, those are the models of the settings."""
    return Dispatch(
        log=services.live.log,
        journal=services.journal,
        queue=services.queue,
        wakeups=services.live.wakeups,
        config=settings.dispatch,
        reader_grace_s=settings.sessions.reader_grace_s,
        affinity=affinity,
        is_ours=is_ours or frozenset(each.model_name for each in settings.each_model()).__contains__,
    )


def _forgetting(settings: Settings, services: Services) -> Forget:
    """Deletes a stream that must not be kept after the reader's grace time."""

    async def forget(job: Job) -> None:
        with contextlib.suppress(DependencyDown):  # then it expires by itself
            await services.live.log.forget(job.id, in_s=settings.sessions.reader_grace_s)

    return forget
