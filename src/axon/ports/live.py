"""Ports for fast, expiring state. Each states what a *missing* value means, because this memory can be lost.

The service's clock measures expiry: callers give durations in seconds, never points in time.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from axon.domain.log.append import AppendStatus as AppendStatus
from axon.domain.log.chunk import Chunk
from axon.domain.log.ownership import Claimed, LogView
from axon.domain.presence import Presence
from axon.domain.session.pin import Pin
from axon.domain.tenants.account import Bounds, Entry, Round, Settlement, Standing


@dataclass(frozen=True, slots=True)
class Appended:
    """Result of one append."""

    status: AppendStatus
    last: int
    """Seq of the log's last token."""


class TokenLog(Protocol):
    """A numbered stream of tokens per job, written by one owner at a time, readable from any seq.

    Missing means lost or expired: look into the store, then open the stream again from the job.
    """

    async def open(self, job_id: str, body: bytes, *, reader_ttl_s: float | None) -> bool:
        """Creates the job's stream; False when it exists. With ``reader_ttl_s`` None the job needs no reader."""

    async def claim(self, job_id: str, owner: str, *, over: int) -> Claimed | None:
        """Claims the job (compare-and-set): raises its epoch from ``over``, and returns the new one with the crash
        count of the last release. None when the job is missing or ended, or has another epoch."""

    async def release(self, job_id: str, epoch: int, *, crashes: int) -> None:
        """Gives up the claim of this epoch, if it still holds, and stores the job's crash count for the next claim."""

    async def append(self, batch: Sequence[tuple[str, Chunk]]) -> Sequence[Appended]:
        """Appends one chunk to each of several streams. Each is a compare-and-set: the epoch must be the stored one,
        ``first`` the next seq, and the stream not ended."""

    async def read(self, job_id: str, *, after: int) -> LogView | None:
        """The stream past seq ``after``, with the ends of choices whose last token is ``after``; None when missing."""

    async def views(self, job_ids: Sequence[str]) -> Sequence[LogView | None]:
        """The state of several jobs, in order, without their chunks; None for each that is missing."""

    async def flag(
        self,
        job_id: str,
        *,
        cancel: bool = False,
        asked: bool = False,
        refused: bool = False,
        reader_ttl_s: float | None = None,
    ) -> bool:
        """Cancels the job, or renews its reader's lease for ``reader_ttl_s`` seconds; False when missing or ended, or
        for a refusal of a job that is confirmed.

        ``asked`` says that the job's client asked for the cancellation, ``refused`` that the client was told that the
        job was not accepted; the log keeps either as long as the stream, and ``refused`` if both are said.
        A cancellation is notified on the channel ``STOPS`` with the job's id.
        """

    async def confirm(self, job_id: str) -> bool:
        """Notes that a client was told that the job is accepted, so that the refusal of another request with its key
        does nothing from now on; False where that came first."""

    async def forget(self, job_id: str, *, in_s: float) -> bool:
        """Deletes an ended stream after ``in_s`` seconds, if that is before its expiry; False when missing or
        running."""


class Leases(Protocol):
    """Leases of workers. A missing lease may be a lost one: compare ``run_id`` before you take the owner for dead."""

    async def hold(self, owner: str, ttl_s: float) -> None:
        """Takes or renews the owner's lease."""

    async def alive(self, owners: Sequence[str]) -> frozenset[str]:
        """The subset of the owners whose lease has not expired."""

    async def drop(self, owner: str) -> None:
        """Ends the lease now."""

    async def run_id(self) -> str:
        """Id of the service's run; it changes when the service restarts or loses its memory."""

    def for_thread(self, *, deadline_s: float) -> "Callable[[], AbstractAsyncContextManager[Leases]] | None":
        """Returns a function that opens the same leases in another thread's event loop, on a separate connection
        with this deadline. None where the leases exist in this process only.
        """


class Accounts(Protocol):
    """Accounts of tenants and fleets: how much of their limits is in use. Each call changes an account atomically.

    A missing account has nothing in use and reports its budgets as unseeded. Beats restore jobs that it has lost.
    """

    async def admit(self, account: str, entry: Entry, bounds: Bounds) -> Standing:
        """Admits a job, or sets ``refused``. A refusal or an unseeded budget changes nothing."""

    async def beat(self, rounds: Sequence[Round]) -> Sequence[Standing]:
        """Heartbeats: extends each job's time to live and charges what it has used. Refuses nobody."""

    async def settle(self, ends: Sequence[Settlement]) -> None:
        """Ends jobs. An unknown or already settled job changes nothing."""


class Crowds(Protocol):
    """Bounded sets whose members expire (counting semaphores). A missing crowd is empty."""

    async def enter(self, crowd: str, member: str, *, limit: int, ttl_s: float) -> bool:
        """Joins a crowd of at most ``limit`` members; a present member gets a new ttl. False when the crowd is full."""

    async def leave(self, crowd: str, member: str) -> bool:
        """Leaves the crowd; False when the member was not in it, so that only one caller acts on the leaving."""

    async def count(self, crowd: str) -> int:
        """Number of members whose ttl has not expired."""


class Shares(Protocol):
    """Virtual counters of the service that each tenant has received, for fair sharing. A missing counter counts as the
    minimum over active tenants, which a pool's workers keep under the empty name."""

    async def charge(
        self, pool: str, amounts: Mapping[str, float], *, floor: float = 0.0, asked: Sequence[str] = ()
    ) -> Mapping[str, float]:
        """Adds to each tenant's counter, after lifting a missing counter or one below ``floor`` to ``floor``. Returns
        what ``counters`` would return for ``asked`` then."""

    async def counters(self, pool: str, tenants: Sequence[str]) -> Mapping[str, float]:
        """The counters of these tenants; those without one are left out."""


class Cache(Protocol):
    """A cache of values that can be computed or read elsewhere. A missing value means nothing."""

    async def get(self, key: str) -> bytes | None: ...

    async def put(self, key: str, value: bytes, *, ttl_s: float, only_new: bool = False) -> bool:
        """Stores the value; False, with nothing changed, when ``only_new`` and the key exists."""

    async def drop(self, key: str) -> None: ...


class Pins(Protocol):
    """The versions that sessions are pinned to, each under the digest of its session's name.

    A missing pin means nothing: it may have expired or be lost. Read the store behind a barrier before you choose.
    """

    async def get(self, key: str) -> Pin | None: ...

    async def pin(self, key: str, wanted: Pin, *, ttl_s: float) -> Pin:
        """Sets the pin if there is none; returns the one that binds, which is the stored one if there was any."""

    async def move(self, key: str, old: Pin, new: Pin, *, ttl_s: float) -> Pin | None:
        """Compare-and-set: replaces ``old`` by ``new``. Returns the pin that binds then, which is another caller's
        when that came first; None, with nothing changed, when the pin is missing."""

    async def confirm(self, key: str, pin: Pin, *, ttl_s: float) -> Pin | None:
        """A turn was accepted under the pin: keeps it for ``ttl_s`` seconds more, with its move told. Another pin
        stays as it is, and a missing one missing. Returns the pin that binds."""

    async def drop(self, key: str) -> None:
        """Removes the pin, for an erasure."""


class Presences(Protocol):
    """Service discovery: the workers of a deployment, as each last announced itself.

    A missing worker may be gone or cut off, or the service has lost its memory and learns of the worker again within a
    second. So a missing announcement is no proof of death (leases are), and callers go on with what they knew before.
    """

    async def put(self, presence: Presence, *, ttl_s: float) -> bool:
        """Announces the worker for ``ttl_s`` seconds; False, with nothing changed, while another incarnation has its
        name."""

    async def all(self, deployment: str) -> Sequence[Presence]:
        """The announcements that have not expired, sorted by the worker's name."""

    async def drop(self, presence: Presence) -> None:
        """Withdraws the announcement; one of another incarnation under the same name stays."""


class Listener(Protocol):
    """One subscription."""

    async def next(self, timeout_s: float) -> bytes | None:
        """The next payload; None after ``timeout_s`` seconds. A slow listener loses the oldest payloads."""


class Wakeups(Protocol):
    """Publish/subscribe notifications. They may be lost, so only speed may depend on them."""

    async def notify(self, channel: str, payload: bytes = b"") -> None:
        """Sends the payload to all current listeners of the channel."""

    def listen(self, channel: str) -> AbstractAsyncContextManager[Listener]:
        """Subscribes to the channel from the moment the context is entered."""

    async def counts(self, channels: Sequence[str]) -> Sequence[int | None]:
        """The number of listeners of each channel, without those whose connection is closed, as that of a process that
        has died; None for each of which the service cannot tell."""


STOPS = "stops"
"""Channel on which workers receive the ids of cancelled jobs."""


ERASURES = "erasures"
"""Channel on which workers receive the tombstones of sessions whose copies of KV blocks are to be erased."""


def lifeline(owner: str) -> str:
    """Channel to which an owner listens while it lives; nothing is sent there."""
    return f"lifeline/{owner}"


def stream_channel(job_id: str) -> str:
    """Channel of a job's appends; the payload is the encoded chunk, or empty when it must be read from the log."""
    return f"stream/{job_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """All nine ports, opened and closed together."""

    log: TokenLog
    leases: Leases
    accounts: Accounts
    crowds: Crowds
    shares: Shares
    cache: Cache
    pins: Pins
    presences: Presences
    wakeups: Wakeups
