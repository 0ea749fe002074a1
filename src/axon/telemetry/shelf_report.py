"""Sets the metrics of an engine's shelf: copies of KV blocks outside its device."""

from typing import Protocol

from axon.telemetry.declared.engines import EngineMetrics


class ShelfCounters(Protocol):
    """What an engine keeps of KV blocks outside its device, and has moved since its start."""

    @property
    def host_bytes(self) -> int: ...
    @property
    def file_bytes(self) -> int: ...
    @property
    def saved_bytes(self) -> int: ...
    @property
    def loaded_bytes(self) -> int: ...
    @property
    def written_bytes(self) -> int: ...
    @property
    def read_bytes(self) -> int: ...
    @property
    def loaded_tokens(self) -> int: ...
    @property
    def damaged(self) -> int: ...


class ShelfReport:
    """Shows what one worker's engine says of its shelf."""

    def __init__(self, engine: EngineMetrics, who: tuple[str, ...]) -> None:
        self._engine, self._who = engine, who
        self._host, self._file = (engine.shelf_bytes.labels(place, *who) for place in ("host", "file"))
        moved = engine.shelf_moved
        self._counters = {
            "saved_bytes": moved.labels("save", *who),
            "loaded_bytes": moved.labels("load", *who),
            "written_bytes": moved.labels("write", *who),
            "read_bytes": moved.labels("read", *who),
            "loaded_tokens": engine.shelf_hits.labels(*who),
            "damaged": engine.shelf_damaged.labels(*who),
        }
        self._seen = dict.fromkeys(self._counters, 0)
        self._latest: ShelfCounters | None = None

    def show(self, counters: ShelfCounters) -> None:
        """Adds what has moved since the last report, and shows what is kept."""
        if counters == self._latest:
            return
        self._latest = counters
        self._host.set(counters.host_bytes)
        self._file.set(counters.file_bytes)
        for name, counter in self._counters.items():
            count = getattr(counters, name)
            if new := since(self._seen[name], count):
                counter.inc(new)
            self._seen[name] = count

    def closed(self) -> None:
        """The worker has left: its gauges would show its last state for ever."""
        for place in ("host", "file"):
            self._engine.shelf_bytes.remove(place, *self._who)


def since(seen: int, count: int) -> int:
    """What a count has grown by since it was seen; all of it if the engine has started anew since."""
    return count - seen if count >= seen else count
