"""The engine as its worker speaks to it: one process, from its start to its death."""

from collections.abc import AsyncIterator
from typing import Protocol

from axon.engine.protocol.messages import Add, Ready, StepOutput


class Engine(Protocol):
    """One engine process, from its start to its death, as the worker speaks to it."""

    @property
    def pid(self) -> int | None: ...

    @property
    def in_step(self) -> frozenset[str]:
        """The sequence ids of the step in which it died; empty where that is not known."""

    async def open(self, *, timeout_s: float) -> Ready: ...

    def outputs(self) -> AsyncIterator[StepOutput]: ...

    def add(self, sequence: Add) -> None: ...

    def abort(self, ids: list[str]) -> None: ...

    def erase(self, sessions: list[str]) -> None: ...

    async def profile(self, kind: str, seconds: float) -> bytes: ...

    def kill(self) -> None:
        """Kills the process at once; ``outputs`` then ends."""

    async def aclose(self) -> None: ...
