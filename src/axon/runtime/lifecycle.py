"""A process's life: starting, ready, draining. One object, passed to whoever needs to know."""

import asyncio
from dataclasses import dataclass, field


@dataclass(slots=True)
class Lifecycle:
    """Set by the process's owner, read by everybody."""

    ready: bool = False
    """Can take work now."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the process was told to end: take nothing new."""
    hurry: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it was told twice: wait for nothing."""

    @property
    def draining(self) -> bool:
        return self.stopping.is_set()

    def stop(self) -> None:
        self.ready = False
        self.stopping.set()
