"""Fetches the LoRA adapters that jobs name, beside the engine's work, and holds their files while a job needs them.

A job whose adapter is not here yet stays in the worker's hands and enters the engine when it is. What the engine has in
memory it has read, so the files are let go of when no job in hand names them: then they may give way to others on the
disk. The next job finds them there and has them checked, or has them fetched again. Knows no engine.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

import structlog

from axon.domain.job import Job
from axon.domain.model.adapter import JobAdapter
from axon.errors import AxonError
from axon.runtime.clock import Clock

AT_ONCE = 4
"""Adapters that are fetched at the same time."""
PER_TENANT = 2
"""Adapters that are fetched at the same time for one tenant's jobs, so that its slow sources leave room for others."""
_HUNG_S = 5.0
"""Seconds that a fetch has to end once its time is over; then its jobs fail without it, and a worker that stops goes on
without it. One from a network disk that is away cannot end."""
_NO_ROOM = "disk_full"
"""The code of the error of a full disk, which may pass when files are let go of."""

_logger = structlog.get_logger("axon.worker")


class AdapterFiles(Protocol):
    """An adapter's files on this machine, which stay until ``close``."""

    @property
    def folder(self) -> Path: ...

    def is_whole(self) -> bool:
        """Whether they are as they were when they were checked."""
        ...

    def close(self) -> None: ...


Fetch = Callable[[JobAdapter], Awaitable[AdapterFiles]]
"""Returns an adapter's files, fetched or found here, and compared with its digest; raises ``AxonError``."""


_Place = tuple[str, str, str]
"""Digest, source and its revision: what one fetch is of, whatever names it has."""


def _place(adapter: JobAdapter) -> _Place:
    return adapter.digest, adapter.source, adapter.source_revision


@dataclass(slots=True, eq=False)
class _Wanted:
    """An adapter whose files jobs wait for."""

    adapter: JobAdapter
    until: float
    """Monotonic time at which the jobs fail."""
    tenants: dict[str, str] = field(default_factory=dict)
    """The tenants of the jobs that wait, by the job's id."""
    task: asyncio.Task[None] | None = None
    tenant: str = ""
    """The tenant in whose place it is fetched."""
    is_leaving: bool = False
    """Its fetch was cancelled and has not ended."""
    lacks_room: bool = False
    """The disk was full; it is fetched again when files are let go of."""

    @property
    def ends_at(self) -> float:
        """Monotonic time at which the jobs fail at last; a fetch ends by itself before that."""
        return self.until if self.task is None else self.until + _HUNG_S


class AdapterFolders:
    """The files of adapters that this worker has and fetches. The supervisor calls ``folder`` for each job that is to
    enter the engine, and ``let_go`` when the job has left the worker; ``run`` fetches what is missing."""

    def __init__(self, fetch: Fetch | None, clock: Clock, *, timeout_s: float) -> None:
        """Without ``fetch`` no adapter is found. ``timeout_s``: how long jobs wait for an adapter's files."""
        self._fetch, self._clock, self._timeout_s = fetch, clock, timeout_s
        self._held: dict[str, AdapterFiles] = {}
        """The files that are here, by digest; each has users."""
        self._users: dict[str, set[str]] = {}
        """The ids of the jobs in hand that name an adapter, by digest."""
        self._named: dict[str, JobAdapter] = {}
        """The adapter that each of these jobs names, by the job's id."""
        self._wanted: dict[_Place, _Wanted] = {}
        """The adapters that jobs wait for, the first one asked for first. Files that are registered with two sources
        are fetched from both: no tenant waits for another one's source."""
        self._num_freed = 0
        """How often files may have become free to give way; a fetch that fails for want of room compares it."""
        self._news = asyncio.Event()
        self.on_fetched: Callable[[list[str]], None] = lambda job_ids: None
        """Called with the ids of the jobs that waited for an adapter's files, which are here."""
        self.on_failed: Callable[[list[str]], None] = lambda job_ids: None
        """Called with the ids of the jobs that waited for an adapter that cannot be fetched."""

    def folder(self, job: Job) -> Path | None:
        """The folder with the files of a job's adapter; None while they are fetched, which begins with the first call
        for them. Files that were changed or removed meanwhile are fetched again."""
        assert job.adapter is not None
        digest = job.adapter.digest
        self._users.setdefault(digest, set()).add(job.id)
        self._named[job.id] = job.adapter
        if self.are_whole(job):
            return self._held[digest].folder
        if (wanted := self._wanted.get(place := _place(job.adapter))) is None:
            until = self._clock.monotonic() + self._timeout_s
            wanted = self._wanted[place] = _Wanted(job.adapter, until)
        if job.id not in wanted.tenants:
            wanted.tenants[job.id] = job.tenant
            self._news.set()
        return None

    def are_whole(self, job: Job) -> bool:
        """Whether the files of a job's adapter are here as they were fetched."""
        held = self._held.get(job.adapter.digest) if job.adapter else None
        return held is not None and held.is_whole()

    def let_go(self, job_id: str) -> None:
        """The job has left the worker; unknown ones are ignored."""
        if (adapter := self._named.pop(job_id, None)) is None:
            return
        digest, place = adapter.digest, _place(adapter)
        if (wanted := self._wanted.get(place)) is not None:
            wanted.tenants.pop(job_id, None)
            if not wanted.tenants and wanted.task is None:
                del self._wanted[place]
        self._users[digest].discard(job_id)
        if not self._users[digest]:
            del self._users[digest]
            if (held := self._held.pop(digest, None)) is not None:
                held.close()
                self._freed()

    async def run(self) -> None:
        """Fetches adapters until cancelled; lets go of all files then."""
        try:
            async with asyncio.TaskGroup() as tasks:
                try:
                    await self._fetch_all(tasks)
                finally:
                    await self._leave()
        finally:
            for held in self._held.values():
                held.close()
            self._held.clear()

    async def _fetch_all(self, tasks: asyncio.TaskGroup) -> None:
        while True:
            await self._heard()
            self._fail_late()
            while (wanted := self._next()) is not None:
                wanted.task = tasks.create_task(self._get(wanted))
                wanted.task.add_done_callback(partial(self._ended, wanted))

    async def _leave(self) -> None:
        """Cancels the fetches and gives them time to end. The task group cancels what hangs once more, which then
        leaves its thread behind."""
        fetching = [each.task for each in self._wanted.values() if each.task is not None]
        for task in fetching:
            task.cancel()
        if fetching:
            await asyncio.wait(fetching, timeout=_HUNG_S)

    async def _heard(self) -> None:
        """Returns at the next news, and when an adapter has been waited for long enough."""
        ends = [each.ends_at for each in self._wanted.values() if each.tenants]
        try:
            async with asyncio.timeout(max(0.0, min(ends) - self._clock.monotonic()) if ends else None):
                await self._news.wait()
        except TimeoutError:
            pass
        self._news.clear()

    def _fail_late(self) -> None:
        now = self._clock.monotonic()
        for wanted in [each for each in self._wanted.values() if each.tenants and each.ends_at <= now]:
            self._fail(wanted, "there is no room, its source hangs, or the fetches before it take too long")

    def _next(self) -> _Wanted | None:
        """Chooses what is fetched next: of the tenant with the fewest fetches, what was asked for first. A fetch that
        nobody waits for goes on, but makes place for one that somebody waits for."""
        fetching = [each for each in self._wanted.values() if each.task is not None]
        ready = [each for each in self._wanted.values() if each.task is None and not each.lacks_room]
        if not ready:
            return None
        num_of = Counter(each.tenant for each in fetching)
        choices = [(num_of[tenant], tenant, each) for each in ready for tenant in each.tenants.values()]
        num, tenant, wanted = min(choices, key=lambda choice: choice[0])
        has_part, is_full = num >= PER_TENANT, len(fetching) >= AT_ONCE
        if not has_part and not is_full:
            wanted.tenant = tenant
            return wanted
        for each in fetching:
            if not each.tenants and (each.tenant == tenant or not has_part) and each.task and not each.is_leaving:
                each.is_leaving = True
                each.task.cancel()
                break
        return None

    async def _get(self, wanted: _Wanted) -> None:
        digest, num_freed = wanted.adapter.digest, self._num_freed
        try:
            if self._fetch is None:
                raise AxonError("This worker fetches no adapters.")
            async with asyncio.timeout(max(0.0, wanted.until - self._clock.monotonic())):
                files = await self._fetch(wanted.adapter)
        except Exception as error:  # a disk may fail in many ways, and the worker has other jobs
            has_changed = self._num_freed != num_freed
            if _lacks_room(error) and wanted.tenants and (has_changed or self._uses_others(wanted)):
                wanted.task, wanted.lacks_room = None, not has_changed
            else:
                self._fail(wanted, _words(error))
        else:
            del self._wanted[_place(wanted.adapter)]
            self._take(digest, files)
            self.on_fetched([*wanted.tenants, *self._others_served(digest)])
        self._news.set()

    def _ended(self, wanted: _Wanted, task: asyncio.Task[None]) -> None:
        """A fetch has ended; where it was cancelled, whoever has asked again meanwhile waits behind the others."""
        if not task.cancelled():
            return
        del self._wanted[place := _place(wanted.adapter)]
        if wanted.tenants:
            until = self._clock.monotonic() + self._timeout_s
            self._wanted[place] = _Wanted(wanted.adapter, until, wanted.tenants)
        self._freed()

    def _uses_others(self, wanted: _Wanted) -> bool:
        """Whether other files are in use or fetched here, which may be let go of."""
        fetching = (each.adapter.digest for each in self._wanted.values() if each.task is not None)
        return bool({*self._held, *fetching} - {wanted.adapter.digest})

    def _take(self, digest: str, files: AdapterFiles) -> None:
        old = self._held.pop(digest, None)
        if digest in self._users:
            self._held[digest] = files
        else:
            files.close()  # all who waited have left
            self._freed()
        if old is not None:
            old.close()

    def _others_served(self, digest: str) -> list[str]:
        """The jobs that waited for the same files from another source, and wait no longer."""
        job_ids: list[str] = []
        for place, wanted in list(self._wanted.items()):
            if wanted.adapter.digest == digest:
                job_ids += wanted.tenants
                wanted.tenants.clear()
                if wanted.task is None:
                    del self._wanted[place]
        return job_ids

    def _freed(self) -> None:
        """Has what lacks room tried again: files may give way that could not."""
        self._num_freed += 1
        for each in self._wanted.values():
            each.lacks_room = False
        self._news.set()

    def _fail(self, wanted: _Wanted, why: str) -> None:
        """Fails the jobs that wait; the adapter is forgotten, so that the next job tries again."""
        job_ids = list(wanted.tenants)
        wanted.tenants.clear()
        if wanted.task is None or wanted.task is asyncio.current_task():
            del self._wanted[_place(wanted.adapter)]
        self._freed()  # what is left of a fetch gives way
        if job_ids:
            _logger.warning("adapter.not_fetched", model=wanted.adapter.name, error=why, next="its turns are failed")
            self.on_failed(job_ids)


def _lacks_room(error: Exception) -> bool:
    return isinstance(error, AxonError) and error.code == _NO_ROOM


def _words(error: Exception) -> str:
    if isinstance(error, AxonError):
        return str(error)
    return "it took too long" if isinstance(error, TimeoutError) else f"{type(error).__name__}: {error}"
