"""Drains of versions: closes one that no session needs any more, and removes a closed one. Knows no lane and no worker.

draining ─► no session is pinned to it, or its age is reached ─► closed: no turn begins on it
         ─► every gateway holds that revision ─► the accept timeout passes ─► barrier ─► nothing is left ─► removed

Waits are measured by this process's own monotonic clock from its own first look, so a new leader waits anew and no two
clocks are compared.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import structlog

from axon.domain.registry.deployment import Deployment, Member, MemberState
from axon.domain.registry.letters import left
from axon.domain.registry.snapshot import Snapshot
from axon.errors import AxonError
from axon.ports.live import Leases
from axon.ports.store import RegistryStore
from axon.registry.holders import SILENT_S, Holders
from axon.registry.writer import RegistryWriter
from axon.runtime.clock import Clock
from axon.sessions.pins import UNACCEPTED_S

ACTOR = "control"
PIN_S = UNACCEPTED_S
"""A drain lasts at least as long as a pin whose turn was not accepted."""
_EVERY_S = 1.0

_logger = structlog.get_logger("axon.control")


class Uses(Protocol):
    """What a version is still needed for."""

    async def barrier(self) -> None:
        """Returns when everything that was accepted before is in the store."""

    async def pinned(self, version: str) -> int:
        """Number of sessions with an unexpired pin to the version."""

    async def unfinished(self, deployment: str, version: str) -> int:
        """Number of the version's accepted turns that have not ended."""

    async def waiting(self, deployment: Deployment, member: Member) -> int:
        """Number of jobs in the member's lanes."""


@dataclass(slots=True)
class _Wait:
    """Since when this process has seen a member in its state, in monotonic seconds."""

    revision: int
    """The deployment's revision then: that of the change to this state, or a later one."""
    run_id: str
    since: float
    held_since: float | None = None
    """When every gateway was first seen to hold that revision."""


class Drains:
    """Several may run at once: each change compares the deployment's revision."""

    def __init__(
        self,
        store: RegistryStore,
        writer: RegistryWriter,
        holders: Holders,
        leases: Leases,
        uses: Uses,
        clock: Clock,
        *,
        accept_timeout_s: float,
        max_age_s: float,
        min_age_s: float = 0.0,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store, self._writer, self._holders, self._leases = store, writer, holders, leases
        self._uses, self._clock, self._leads = uses, clock, leads
        self._accept_timeout_s, self._max_age_s, self._min_age_s = accept_timeout_s, max_age_s, min_age_s
        self._waits: dict[tuple[str, Member], _Wait] = {}
        self._snapshot = Snapshot(revision=-1)
        """What was read last; it is read again when the registry's revision has changed."""

    async def run(self) -> None:
        """Looks once a second while this process leads, until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_S)
            if not self._leads():
                self._waits.clear()
                continue
            try:
                await self.look()
            except AxonError as error:
                _logger.warning("drain.waits", error=str(error))

    async def look(self) -> None:
        """Does the next thing for each member that drains or is closed."""
        if self._snapshot.revision != await self._store.revision():
            self._snapshot = await self._store.snapshot()
        due = [
            (deployment, member)
            for deployment in self._snapshot.deployments.values()
            for member in deployment.members
            if _is_leaving(deployment, member)
        ]
        if not due:
            self._waits = {}
            return
        run_id = await self._leases.run_id()
        waits = {(deployment.name, member): self._wait(deployment, member, run_id) for deployment, member in due}
        self._waits = waits
        for deployment, member in due:
            wait = waits[deployment.name, member]
            if member.state is not MemberState.CLOSED:
                await self._close(deployment, member, wait)
            elif await self._is_unused(deployment, member, wait):
                await self._remove(deployment, member)

    def _wait(self, deployment: Deployment, member: Member, run_id: str) -> _Wait:
        """The member's wait; it begins again when ``live`` has lost its memory, and the announcements with it."""
        known = self._waits.get((deployment.name, member))
        if known is not None and known.run_id == run_id:
            return known
        return _Wait(revision=deployment.revision, run_id=run_id, since=self._clock.monotonic())

    async def _close(self, deployment: Deployment, member: Member, wait: _Wait) -> None:
        if self._clock.monotonic() - wait.since < PIN_S:
            return
        age_s = self._clock.now() - member.since
        if member.state is MemberState.DRAINING and age_s < self._min_age_s:
            return  # a rollout can still be taken back to it
        is_old = age_s > self._max_age_s
        if not is_old:
            await self._uses.barrier()
            if await self._uses.pinned(member.version):
                return
        closed = replace(member, state=MemberState.CLOSED, since=self._clock.now())
        members = tuple(closed if each == member else each for each in deployment.members)
        if await self._write(deployment, replace(deployment, members=members)):
            _logger.info("drain.closed", deployment=deployment.name, version=member.version, by_age=is_old)

    async def _is_unused(self, deployment: Deployment, member: Member, wait: _Wait) -> bool:
        now = self._clock.monotonic()
        if now - wait.since < SILENT_S:
            return False  # a gateway that is not heard of may still come back
        if await self._holders.behind(wait.revision):
            wait.held_since = None
            return False
        if wait.held_since is None:
            wait.held_since = now
        if now - wait.held_since < self._accept_timeout_s:
            return False
        await self._uses.barrier()
        return not (
            await self._uses.unfinished(deployment.name, member.version)
            or await self._uses.pinned(member.version)
            or await self._uses.waiting(deployment, member)
        )

    async def _remove(self, deployment: Deployment, member: Member) -> None:
        if await self._write(deployment, left(deployment, member.version, at=self._clock.now())):
            _logger.info("drain.removed", deployment=deployment.name, version=member.version)

    async def _write(self, old: Deployment, new: Deployment) -> bool:
        """False when somebody has changed the deployment meanwhile: the next look sees it as it is then."""
        return await self._writer.write([(old, new)], actor=ACTOR) is not None


def _is_leaving(deployment: Deployment, member: Member) -> bool:
    """Whether the member is on its way out: no rollout brings it back, and new sessions do not begin on it."""
    rollout = deployment.rollout
    is_rolled_out = rollout is not None and not rollout.state.is_over and member.version in (rollout.old, rollout.new)
    is_out = member.state in (MemberState.DRAINING, MemberState.FAILED, MemberState.CLOSED)
    return is_out and member.version != deployment.stable and not is_rolled_out
