"""Builds the parts of the registry, the same in every process that needs them."""

from collections.abc import Awaitable, Callable

from axon.bootstrap.models.version_settings import check_servable
from axon.domain.job import Job
from axon.ports.live import Live
from axon.ports.store import Store
from axon.registry.catalog import Catalog
from axon.registry.follower import RegistryFollower
from axon.registry.holders import Holders
from axon.registry.revisions import Revisions
from axon.registry.writer import RegistryWriter
from axon.runtime.clock import Clock
from axon.settings import Settings


def make_writer(store: Store, clock: Clock, live: Live | None) -> RegistryWriter:
    """Without a shared ``live``, followers find a change in the store within a second."""
    return RegistryWriter(store.registry, clock, Revisions(live.cache, live.wakeups) if live else None)


def make_catalog(
    settings: Settings,
    store: Store,
    clock: Clock,
    live: Live | None,
    pinned: Callable[[str], Awaitable[int]],
    barrier: Callable[[], Awaitable[None]] | None = None,
) -> Catalog:
    """``pinned`` counts the sessions that are pinned to a version; after ``barrier``, the store has every turn that was
    accepted before."""

    async def unfinished(deployment: str) -> int:
        if barrier is not None:
            await barrier()
        counts = await store.turns.count_unfinished()
        return sum(each.count for each in counts if each.deployment == deployment)

    return Catalog(
        store.registry,
        make_writer(store, clock, live),
        clock,
        pinned=pinned,
        unfinished=unfinished,
        check_version=check_servable,
        letter_rest_s=settings.sessions.turn_timeout_s,
    )


def removed_in(view: RegistryFollower) -> Callable[[Job], bool | None]:
    """A function that tells whether the version of a job was removed from its deployment; None for one that the
    registry has never had. A view that is not fresh says of none that it is."""

    def is_removed(job: Job) -> bool | None:
        snapshot = view.snapshot
        deployment = snapshot.deployments.get(job.deployment)
        members = [snapshot.versions.get(member.version) for member in deployment.members] if deployment else []
        if any(each and job.version in (each.id, *each.fingerprints) for each in members):
            return False
        is_registered = job.version in snapshot.versions or job.version.rpartition("@")[0] in snapshot.models
        return view.is_fresh if is_registered else None

    return is_removed


def make_follower(store: Store, live: Live, clock: Clock, *, holder: str = "") -> RegistryFollower:
    """With a ``holder``'s id, it announces the revision that it holds: for processes that begin turns."""
    return RegistryFollower(
        store.registry,
        Revisions(live.cache, live.wakeups),
        live.wakeups,
        clock,
        holders=Holders(live.cache) if holder else None,
        holder=holder,
    )
