"""Where the processes of one fleet meet: a queue, a live service, a store and a name; and a look into each of them."""

import contextlib
import re
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import psycopg
import redis

from axon.domain import wire
from axon.domain.turn import Turn
from tests.services import rabbitmq
from tests.services.rabbitmq import RabbitServer

_COUNT = """
[begin
    {ok, {_, Count}, _} = ra:local_query(amqqueue:get_pid(Queue), fun rabbit_fifo:query_messages_%s/1),
    {binary_to_list(element(4, amqqueue:get_name(Queue))), Count}
end || Queue <- rabbit_amqqueue:list()].
"""
"""All queues are quorum queues."""


@dataclass(kw_only=True)
class Place:
    """The services as the fleet reaches them, and as a test looks into them."""

    folder: Path
    rabbit: RabbitServer
    """A node that is up; follows a failover, as the two below do."""
    live_port: int = 0
    store_url: str = ""
    urls: dict[str, str]
    """``queue``, ``live`` and ``store`` for the fleet."""
    namespace: str = field(default_factory=rabbitmq.new_namespace)

    @property
    def data_dir(self) -> Path:
        """Of the whole fleet."""
        return self.folder / "data"

    @property
    def key(self) -> str:
        """The one that the fleet's first gateway made."""
        return (self.data_dir / "dev-key").read_text().strip()

    def live(self) -> redis.Redis:
        """Straight to the live service; close it."""
        return redis.Redis(port=self.live_port, protocol=2, socket_timeout=30.0)

    def job(self, stream_id: str) -> dict[bytes, bytes]:
        """The live service's own note of a job; empty when it has none."""
        with self.live() as live:
            found: dict[bytes, bytes] = live.hgetall(f"{self.namespace}:{{{stream_id}}}:job")
            return found

    def owner(self, stream_id: str) -> str:
        """The incarnation that has claimed a job; empty when none has."""
        return self.job(stream_id).get(b"owner", b"").decode()

    def jobs(self, owner: str) -> dict[str, int]:
        """The unfinished jobs of a worker, with the last seq of each."""
        found = {}
        with self.live() as live:
            keys = list(live.scan_iter(f"{self.namespace}:*:job", count=1000))
            pipe = live.pipeline(transaction=False)
            for key in keys:
                pipe.hmget(key, "owner", "last", "ended")
            for key, (of, last, ended) in zip(keys, pipe.execute(), strict=True):
                if of == owner.encode() and ended is None:
                    found[key.decode().split("{")[1].split("}")[0]] = int(last)
        return found

    def incarnation(self, worker: str) -> str:
        """The life that a worker is in, by its name, as it says itself."""
        with self.live() as live:
            for key in live.scan_iter(f"{self.namespace}:workers:*", count=1000):
                if said := live.hget(key, worker):
                    return str(said.split(b" ", 2)[1].decode())
        raise LookupError(f"{worker} has said nothing")

    def leases(self) -> set[str]:
        """The workers whose lease holds."""
        prefix = f"{self.namespace}:{{leases}}:lease:"
        with self.live() as live:
            return {key.decode().removeprefix(prefix) for key in live.scan_iter(f"{prefix}*", count=1000)}

    def lasting_keys(self) -> list[str]:
        """What would stay in the live service for ever."""
        with self.live() as live:
            keys = live.scan_iter(f"{self.namespace}:*", count=1000)
            return [key.decode() for key in keys if live.pttl(key) == -1]

    def tickets(self) -> set[str]:
        """The turns that count as queued or running."""
        with self.live() as live:
            crowds = live.scan_iter(f"{self.namespace}:account:*:crowd", count=1000)
            return {member.decode() for crowd in crowds for member in live.zrange(crowd, 0, -1)}

    def messages(self, *, which: Literal["total", "checked_out"] = "total") -> dict[str, int]:
        """Messages of this place's queues where there are any; the checked out ones are in somebody's hands.

        Asks the queues themselves: the broker's own lists lag by seconds.
        """
        listed = self.rabbit.evaluate(_COUNT % which)
        counts = {name: int(count) for name, count in re.findall(r'"([^"]+)", *(\d+)', listed)}
        return {
            name.removeprefix(f"{self.namespace}."): count
            for name, count in counts.items()
            if count and name.startswith(f"{self.namespace}.")
        }

    def ranks(self) -> dict[str, int]:
        """Every turn in the store: 0 for one that has not ended."""
        return dict(self._rows("id, rank"))

    def turns(self) -> list[Turn]:
        """Every row of the store, as often as it is there."""
        turns = []
        for turn_id, state, output_tokens, body in self._rows("id, state, output_tokens, body"):
            turn = wire.decode(Turn, body)
            assert (turn.id, turn.state, turn.usage.output_tokens) == (turn_id, state, output_tokens)
            turns.append(turn)
        return turns

    def _rows(self, columns: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.store_url, autocommit=True, connect_timeout=30) as connection:
            return connection.execute(f"SELECT {columns} FROM turns".encode()).fetchall()


class LonePlace(Place):
    """Of one process that needs no service: its store is a file, and nobody can look into the rest."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.urls, self.namespace = folder, {}, ""

    def jobs(self, owner: str) -> dict[str, int]:
        return {}

    def incarnation(self, worker: str) -> str:
        """The life that a worker is in, by its name, as it says itself."""
        with self.live() as live:
            for key in live.scan_iter(f"{self.namespace}:workers:*", count=1000):
                if said := live.hget(key, worker):
                    return str(said.split(b" ", 2)[1].decode())
        raise LookupError(f"{worker} has said nothing")

    def leases(self) -> set[str]:
        return set()

    def lasting_keys(self) -> list[str]:
        return []

    def tickets(self) -> set[str]:
        return set()

    def messages(self, *, which: Literal["total", "checked_out"] = "total") -> dict[str, int]:
        return {}

    def _rows(self, columns: str) -> list[tuple[Any, ...]]:
        file = self.data_dir / "axon.db"
        with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=30.0)) as connection:
            return connection.execute(f"SELECT {columns} FROM turns").fetchall()
