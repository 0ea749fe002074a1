"""The LoRA adapters in an engine's memory: read beside its steps, bounded, the least recently used ones dropped.

Sequences whose adapter is not here wait until it is. While one waits for room, those behind it wait too, so that
adapters in constant use cannot keep another one out for ever. Knows no tensors: what holds adapters is passed in.
"""

from collections.abc import Iterable, Mapping, Set
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from axon.domain.failure import Failure
from axon.engine.protocol.messages import Add, Refused
from axon.engine.runner import AdapterHost
from axon.errors import AxonError

_WAIT_S = 0.05
"""Longest wait for an adapter's file where a step has nothing else to do."""


def to_drop(
    resident: Mapping[str, int], num_bytes: int, in_use: Set[str], *, most: int, most_bytes: int
) -> list[str] | None:
    """The adapters that give way to one of so many bytes; None while those in use leave no room. Pure.

    ``resident`` has the bytes of each, the least recently used first.
    """
    num_left, bytes_left = len(resident), sum(resident.values())
    dropped: list[str] = []
    for digest, each in resident.items():
        if num_left < most and bytes_left + num_bytes <= most_bytes:
            break
        if digest not in in_use:
            dropped.append(digest)
            num_left, bytes_left = num_left - 1, bytes_left - each
    return dropped if num_left < most and bytes_left + num_bytes <= most_bytes else None


class Adapters:
    """``submit`` a sequence that names an adapter; ``take`` gives it back once the adapter is in memory."""

    def __init__(self, host: AdapterHost, *, most: int, most_bytes: int) -> None:
        self._host, self._most, self._most_bytes = host, most, most_bytes
        self._resident: dict[str, int] = {}
        """Bytes of each adapter in memory, the least recently used first."""
        self._pending: dict[str, Add] = {}
        """Sequences that wait, in the order of their arrival."""
        self._read: dict[str, Future[tuple[Any, int]]] = {}
        """The one adapter that is being read, or was read and waits for room."""
        self._lacks_room = False
        """Whether the sequence that was looked at last waits for others to end, which use the adapters in memory."""
        self._thread: ThreadPoolExecutor | None = None
        self.num_loaded = self.num_dropped = 0
        """Adapters taken into memory since the start, and dropped again."""

    @property
    def pending_ids(self) -> list[str]:
        """The sequences whose adapters are not in memory yet."""
        return list(self._pending)

    @property
    def num_resident(self) -> int:
        return len(self._resident)

    @property
    def resident_bytes(self) -> int:
        return sum(self._resident.values())

    def submit(self, add: Add) -> None:
        """Takes in a sequence; ``take`` gives it back."""
        self._pending[add.id] = add

    def drop(self, ids: Iterable[str]) -> None:
        """Forgets sequences; unknown ids are ignored."""
        for id in ids:
            self._pending.pop(id, None)

    def take(self, in_use: Set[str], *, may_wait: bool) -> list[tuple[Add, Refused | None]]:
        """The sequences whose adapters are in memory now, and those that are refused.

        ``in_use`` are the adapters of all sequences that this has given back and that have not ended.
        """
        used, taken, self._lacks_room = set(in_use), list[tuple[Add, Refused | None]](), False
        if may_wait and self._read:
            wait(self._read.values(), _WAIT_S, FIRST_COMPLETED)
        for add in list(self._pending.values()):
            if add.adapter not in self._resident:
                refused = self._place(add, used)
                if refused is not None:
                    taken.append((self._pending.pop(add.id), refused))
                    continue
                if self._lacks_room:
                    break  # whoever comes later must not keep in use what has to give way
                if add.adapter not in self._resident:
                    continue
            self._resident[add.adapter] = self._resident.pop(add.adapter)
            used.add(add.adapter)
            taken.append((self._pending.pop(add.id), None))
        self._forget_unwanted()
        return taken

    def check(self) -> None:
        """Proves that the bounds are kept; raises AssertionError."""
        assert len(self._resident) <= self._most, "more adapters are in memory than may be"
        assert self.resident_bytes <= self._most_bytes, "the adapters in memory have more bytes than they may have"

    def close(self) -> None:
        """Ends the thread."""
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)

    def _place(self, add: Add, in_use: Set[str]) -> Refused | None:
        """Takes an adapter into memory if it has been read and there is room; returns why it never will be."""
        reading = self._read.get(add.adapter)
        if reading is None:
            if not self._read:
                self._read[add.adapter] = self._pool().submit(self._host.read, Path(add.adapter_folder))
            return None
        if not reading.done():
            return None
        if error := reading.exception():
            if isinstance(error, OSError):
                message = f"The adapter's files cannot be read ({error.strerror or type(error).__name__})."
                return Refused(add.id, Failure.ADAPTER_UNAVAILABLE, message)
            message = error.message if isinstance(error, AxonError) else f"{type(error).__name__}: {error}"
            message = message.replace(f"{add.adapter_folder}/", "").replace(add.adapter_folder, "its folder")
            return Refused(add.id, Failure.ADAPTER_UNUSABLE, f"The adapter cannot be used: {message}")
        adapter, num_bytes = reading.result()
        if num_bytes > self._most_bytes:
            return Refused(
                add.id,
                Failure.ADAPTER_UNUSABLE,
                f"The adapter cannot be used: it has {num_bytes} bytes, and engine.adapter_memory_bytes is "
                f"{self._most_bytes}.",
            )
        dropped = to_drop(self._resident, num_bytes, in_use, most=self._most, most_bytes=self._most_bytes)
        if dropped is None:
            self._lacks_room = True
            return None
        for digest in dropped:
            self._host.drop(digest)
            del self._resident[digest]
        self.num_dropped += len(dropped)
        self._host.hold(add.adapter, adapter)
        self._resident[add.adapter] = num_bytes
        self.num_loaded += 1
        del self._read[add.adapter]
        return None

    def _forget_unwanted(self) -> None:
        """Lets go of what was read for sequences that are gone, and of failures that were told."""
        wanted = {add.adapter for add in self._pending.values()}
        for digest in [each for each, reading in self._read.items() if reading.done() and each not in wanted]:
            del self._read[digest]

    def _pool(self) -> ThreadPoolExecutor:
        self._thread = self._thread or ThreadPoolExecutor(1, thread_name_prefix="axon-adapters")
        return self._thread
