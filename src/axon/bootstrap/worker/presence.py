"""Chooses a worker's name and builds its announcement."""

import socket
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from axon.domain.model.served_version import ServedVersion
from axon.domain.presence import Presence
from axon.errors import Misconfigured
from axon.ports.live import Live
from axon.runtime.clock import Clock
from axon.runtime.datafolder import numbered, own_name
from axon.runtime.lifecycle import Lifecycle
from axon.settings import Settings
from axon.worker.config import WorkerConfig
from axon.worker.peers.presence import Announcer, taken
from axon.worker.worker import Worker

_MAX_HOST_CHARS = 40
_NAME_INTERVALS = 6
"""Intervals between announcements for which a worker waits until the last one of its name has ended."""


@contextmanager
def named(settings: Settings) -> Iterator[str]:
    """The worker's name: the configured one, else the host's name with a number locked in the data folder. Either is
    its own, as far as the data folder is shared, before the worker loads anything."""
    if name := settings.worker.name:
        owner = f"{settings.worker.deployment or settings.model_name}/{name}"
        with own_name(settings.data_dir, owner, wait_s=_NAME_INTERVALS * settings.worker.announce_s) as is_own:
            if not is_own:
                raise Misconfigured(taken(name))
            yield name
        return
    host = socket.gethostname()[:_MAX_HOST_CHARS] or "host"
    folder = zlib.crc32(str(settings.data_dir).encode()) & 0xFFFF
    with numbered(settings.data_dir, "worker") as number:
        yield f"{host}-{folder:04x}-{number}"


def make_announcer(
    worker: Worker,
    name: str,
    deployment: ServedVersion,
    live: Live,
    lifecycle: Lifecycle,
    config: WorkerConfig,
    clock: Clock,
    *,
    zone: str = "",
) -> Announcer:
    def presence() -> Presence:
        return Presence(
            worker=name,
            incarnation=worker.identity.incarnation,
            deployment=deployment,
            load=worker.load,
            pool=config.pool,
            zone=zone,
            draining=lifecycle.draining,
            at=clock.now(),
        )

    return Announcer(
        live.presences,
        presence,
        every_s=config.announce_s,
        clock=clock,
        vacancy=lambda: (worker.free_slots, lifecycle.draining),
    )
