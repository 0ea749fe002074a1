"""A process's life: starting, ready, draining. One object, passed to whoever needs to know."""

import asyncio
from dataclasses import dataclass, field


@dataclass(slots=True)
class Lifecycle:
    """Set by the process's owner, read by everybody."""

    ready: bool = False
    """Can take work now."""
    taking: bool = True
    """New requests are taken; for a while longer than it is ready, so that a balancer hears of that first. A gateway of
    a fleet takes them to its end: it refuses connections, never a request."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the process was told to end."""
    hurry: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it was told twice: wait for nothing."""
    turned_at: float | None = None
    """When the event loop was last seen to turn, by the monotonic clock."""

    @property
    def draining(self) -> bool:
        return self.stopping.is_set()

    def stop(self) -> None:
        self.ready = False
        self.stopping.set()
