"""Lifecycle of a process: starting, ready, draining. One object, passed to all parts of the process."""

import asyncio
from dataclasses import dataclass, field


@dataclass(slots=True)
class Lifecycle:
    """Flags that the process sets and its parts read. No I/O, no clock."""

    ready: bool = False
    """Whether the process can take work now."""
    taking: bool = True
    """Whether new requests are taken: true for a while longer than ``ready``, so that load balancers notice first. A
    gateway of a fleet takes requests to its end: it refuses connections, never a request."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the first signal to stop."""
    hurry: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the second signal: wait for nothing."""
    loop_ran_at: float | None = None
    """Monotonic time at which the event loop last ran."""

    @property
    def draining(self) -> bool:
        return self.stopping.is_set()

    def stop(self) -> None:
        self.ready = False
        self.stopping.set()
