"""Servers that share one place: the same queue, live service and store, the same keys. Knows no fault and no client."""

import os
import signal
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis

from tests.contracts import postgres_backend
from tests.journeys.server import Server
from tests.services import rabbitmq
from tests.services import redis as redis_service
from tests.services.process import wait_for
from tests.services.rabbitmq import RabbitServer
from tests.services.require import require

_PEPPER = "0123456789abcdef0123456789abcdef"


@dataclass(kw_only=True)
class Place:
    """Where the servers of one test meet. What a test wants to break, it brings; the rest is shared by all tests."""

    folder: Path
    rabbit: RabbitServer
    live_url: str
    """As the servers reach it."""
    live_port: int
    """As a test looks into it; follows a failover."""
    store_url: str
    store_admin_url: str
    """As a test reads it."""
    namespace: str = field(default_factory=rabbitmq.new_prefix)
    stack: ExitStack

    def start(self, **settings: object) -> "PlacedServer":
        """One more server, up and ready."""
        number = len(list(self.folder.glob("data-*.log")))
        chosen: dict[str, Any] = {
            "engine_kind": "echo",
            "engine_echo_step_s": 0.01,
            "admission_requests_per_minute": 0,
            "pepper": _PEPPER,
            "namespace": self.namespace,
            "queue": self.rabbit.url,
            "live": self.live_url,
            "store": self.store_url,
            **settings,
        }
        server = PlacedServer(self.folder / f"data-{number}", **chosen)
        first_key = self.folder / "data-0" / "dev-key"
        if first_key.exists():
            server.data_dir.mkdir()
            (server.data_dir / "dev-key").write_text(first_key.read_text())
        server.start()
        self.stack.callback(server.end)
        return server

    def live(self) -> redis.Redis:
        """Straight to the live service; close it."""
        return redis.Redis(port=self.live_port, protocol=2, socket_timeout=5.0)

    def job(self, stream_id: str) -> dict[bytes, bytes]:
        """The live service's own note of a job; empty when it has none."""
        with self.live() as live:
            found: dict[bytes, bytes] = live.hgetall(f"{self.namespace}:{{{stream_id}}}:job")
            return found

    def leases(self) -> set[str]:
        """The workers whose lease holds."""
        prefix = f"{self.namespace}:{{leases}}:lease:"
        with self.live() as live:
            return {key.decode().removeprefix(prefix) for key in live.scan_iter(f"{prefix}*")}


class PlacedServer(Server):
    """A server that can be paused, whole or its engine alone, and that a test may leave in any state."""

    def __init__(self, data_dir: Path, **settings: object) -> None:
        super().__init__(data_dir, **settings)
        self._paused: list[int] = []

    def pause(self) -> None:
        """It and its engine stop where they stand; returns when they have."""
        self._pause([self.pid, *self.engine_pids()])

    def pause_engine(self) -> None:
        """Its streams stand still while everything around them goes on."""
        self._pause(self.engine_pids())

    def resume(self) -> None:
        paused, self._paused = self._paused, []
        for pid in paused:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def end(self) -> None:
        """However it stands; twice is harmless."""
        self.resume()
        self.stop(signal.SIGTERM)

    def _pause(self, pids: list[int]) -> None:
        self._paused = pids
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        wait_for(lambda: all(state_of(pid) == "T" for pid in pids), "the processes are stopped")


def state_of(pid: int) -> str:
    """The process's state as the kernel names it; X when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return "X"


def shared_place(folder: Path, stack: ExitStack, **own: Any) -> Place:
    """A place on the services that all tests share, but for what is given."""
    require("redis-server", "rabbitmq-server", "postgres")
    if "live_url" not in own:
        live = redis_service.shared_server(cluster=False)
        own |= {"live_url": live.url, "live_port": live.port}
    if "store_url" not in own:
        url = postgres_backend.shared_server().create_database(postgres_backend.TEMPLATE)
        own |= {"store_url": url, "store_admin_url": url}
    if "rabbit" not in own:
        own["rabbit"] = rabbitmq.shared_server()
    return Place(folder=folder, stack=stack, **own)
