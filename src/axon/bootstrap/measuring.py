"""Opens the services and measures them: every call of a port is timed under the name of its service."""

from contextlib import AsyncExitStack
from dataclasses import fields, replace
from typing import cast

from axon.bootstrap.process import Process
from axon.bootstrap.services import Services, open_services
from axon.ports.live import Live
from axon.ports.store import Store
from axon.telemetry.measured import Dependency

_STORES = (
    *("keys", "tenants", "plans", "registry", "usage", "storage", "turns", "pinned", "markers", "terms"),
    *("conversations", "tombstones", "files", "batches", "web_sessions", "audit"),
)


async def open_measured(process: Process, stack: AsyncExitStack, *, for_fronts: bool = False) -> Services:
    """Opens the services of the settings, measured; the stack closes them."""
    return measured(await open_services(process.settings, process.clock, stack, for_fronts=for_fronts), process)


def measured(services: Services, process: Process) -> Services:
    """The services, with their calls in the process's metrics. What fronts are served stays as it is."""
    metrics, clock = process.metrics.services, process.clock
    live, queue, journal, store = (Dependency(name, metrics, clock) for name in ("live", "queue", "journal", "store"))
    ports = {each.name: live.measured(getattr(services.live, each.name), f"{each.name}.") for each in fields(Live)}
    writer = services.turn_writer
    return replace(
        services,
        live=Live(**ports),
        queue=queue.measured(services.queue),
        journal=journal.measured(services.journal),
        store=cast("Store", _MeasuredStore(services.store, store)),
        turn_writer=None if writer is None else store.measured(writer, "turns."),
    )


class _MeasuredStore:
    """A store whose aggregates are measured."""

    def __init__(self, store: Store, dependency: Dependency) -> None:
        for name in _STORES:
            setattr(self, name, dependency.measured(getattr(store, name), f"{name}."))
        self.ping = dependency.call(store.ping, "ping")
