"""Builds the parts of the registry, the same in every process that needs them."""

from collections.abc import Awaitable, Callable

from axon.ports.live import Live
from axon.ports.store import Store
from axon.registry.catalog import Catalog, nobody_pinned
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
    pinned: Callable[[str], Awaitable[int]] = nobody_pinned,
) -> Catalog:
    """``pinned`` counts the sessions that are pinned to a version."""
    writer, rest_s = make_writer(store, clock, live), settings.sessions.turn_timeout_s
    return Catalog(store.registry, writer, clock, pinned=pinned, letter_rest_s=rest_s)


def removed_in(view: RegistryFollower) -> Callable[[str], bool | None]:
    """A function that tells whether a version was removed; None for one that the registry has never had."""

    def is_removed(version: str) -> bool | None:
        snapshot, model = view.snapshot, version.rpartition("@")[0]
        if any(deployment.member(version) for deployment in snapshot.deployments.values()):
            return False
        if any(version in each.fingerprints for each in snapshot.versions.values()):
            return False  # a mark of an earlier release, for a version that runs
        return True if version in snapshot.versions or model in snapshot.models else None

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
