"""What is fast and expiring, as eight narrow ports. Each states what *missing* means, because memory can be lost.

Times are the service's own: callers say how long, never until when.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from axon.domain.account import Bounds, Entry, Round, Settlement, Standing
from axon.domain.append import AppendStatus as AppendStatus
from axon.domain.chunk import Chunk
from axon.domain.ownership import LogView
from axon.domain.presence import Presence


@dataclass(frozen=True, slots=True)
class Appended:
    """What became of one append."""

    status: AppendStatus
    last: int
    """Seq of the log's last token."""


class TokenLog(Protocol):
    """A numbered stream per job, written by one owner at a time, read by anybody from any seq.

    Missing means lost or long over: look into the store, then open it again from the job.
    """

    async def open(self, job_id: str, body: bytes, *, reader_ttl_s: float | None) -> bool:
        """Makes the job's stream; False when it is there already. ``None`` waits for no reader, ever."""

    async def claim(self, job_id: str, owner: str, *, over: int) -> int | None:
        """Takes the job from epoch ``over`` to a higher one; None when it is missing, ended or no longer there."""

    async def release(self, job_id: str, epoch: int) -> None:
        """Gives the job up at once, if it is still held under this epoch."""

    async def append(self, batch: Sequence[tuple[str, Chunk]]) -> Sequence[Appended]:
        """One step's chunks, a compare-and-set each: epoch is the stored one, first is last + 1, not ended."""

    async def read(self, job_id: str, *, after: int) -> LogView | None:
        """The stream past ``after``, marks that stand right behind it included; None when missing."""

    async def flag(self, job_id: str, *, cancel: bool = False, reader_ttl_s: float | None = None) -> bool:
        """Asks for the job's end, or says that a reader is there for so long; False when missing or ended.

        Whoever asks for its end is heard on ``STOPS`` with the job's id.
        """

    async def forget(self, job_id: str, *, in_s: float) -> bool:
        """Forgets an ended stream after so long, if that is sooner than its time; False when missing or running."""


class Leases(Protocol):
    """Who is alive. Missing is not expired: compare ``run_id`` before reaping."""

    async def hold(self, owner: str, ttl_s: float) -> None:
        """Takes or renews the owner's lease."""

    async def alive(self, owners: Sequence[str]) -> frozenset[str]:
        """Those of the owners whose lease holds."""

    async def drop(self, owner: str) -> None:
        """Ends the lease now."""

    async def run_id(self) -> str:
        """Changes when the service lost its memory or was restarted."""

    def for_thread(self, *, deadline_s: float) -> "Callable[[], AbstractAsyncContextManager[Leases]] | None":
        """Opens the same leases in another thread's loop, over a connection of its own with its own deadline.

        None where nobody outside this process sees them.
        """


class Accounts(Protocol):
    """What was taken of a tenant's limits, or of a fleet's; each call changes an account as a whole.

    A missing account has taken nothing, and says of its budgets that they are not seeded. What beats for jobs it has
    forgotten brings them back.
    """

    async def admit(self, account: str, entry: Entry, bounds: Bounds) -> Standing:
        """Lets a job in, or ``refused``; changes nothing then, nor where a budget is not seeded."""

    async def beat(self, rounds: Sequence[Round]) -> Sequence[Standing]:
        """Jobs that go on: each stays in for another while, and what it has used is charged. Refuses nobody."""

    async def settle(self, ends: Sequence[Settlement]) -> None:
        """Jobs that have ended. A job that is not known, or was settled, changes nothing."""


class Crowds(Protocol):
    """Bounded sets of those who are in right now. A missing crowd is empty."""

    async def enter(self, crowd: str, member: str, *, limit: int, ttl_s: float) -> bool:
        """Joins a crowd of at most ``limit``; a member who is in already stays in with a new ttl."""

    async def leave(self, crowd: str, member: str) -> bool:
        """Leaves; False when it was not in, so that what follows a leaving is done once."""

    async def count(self, crowd: str) -> int:
        """Members whose ttl holds."""


class Shares(Protocol):
    """Service counters per tenant, for fair sharing. A missing counter is at the active minimum, which a pool's workers
    keep under the empty name."""

    async def charge(self, pool: str, amounts: Mapping[str, float], *, floor: float = 0.0) -> None:
        """Adds to each tenant's counter; one that is below the floor, or missing, is lifted to it before."""

    async def counters(self, pool: str, tenants: Sequence[str]) -> Mapping[str, float]:
        """The counters of these tenants, as far as they have one."""


class Cache(Protocol):
    """Values that can be had again elsewhere. Missing says nothing."""

    async def get(self, key: str) -> bytes | None: ...

    async def put(self, key: str, value: bytes, *, ttl_s: float, only_new: bool = False) -> bool:
        """False when ``only_new`` and there is a value already."""

    async def drop(self, key: str) -> None: ...


class Presences(Protocol):
    """Who works on a deployment, as each worker last said itself.

    Missing means that nobody says so now: the worker may be gone or cut off, or the service has lost its memory and
    will hear of it within a second. So nobody is taken for dead by it (that is what leases are for), and what was
    known before stays true enough to go on with.
    """

    async def put(self, presence: Presence, *, ttl_s: float) -> bool:
        """Says it for so long; False, with nothing changed, while another incarnation has the worker's name."""

    async def all(self, deployment: str) -> Sequence[Presence]:
        """Those whose time holds, by the worker's name."""

    async def drop(self, presence: Presence) -> None:
        """Leaves now; another incarnation under the same name stays."""


class Listener(Protocol):
    """One subscription."""

    async def next(self, timeout_s: float) -> bytes | None:
        """The next payload; None after the timeout. A slow listener loses the oldest."""


class Wakeups(Protocol):
    """Hints that something happened. May be lost, so nothing rests on them but speed."""

    async def notify(self, channel: str, payload: bytes = b"") -> None:
        """Wakes all who listen now."""

    def listen(self, channel: str) -> AbstractAsyncContextManager[Listener]:
        """Hears what is notified from the moment the context is entered."""


STOPS = "stops"
"""Where workers hear of jobs whose end was asked for."""


def stream_channel(job_id: str) -> str:
    """Where a token log notifies its appends: with the encoded chunk, or empty for "read it yourself"."""
    return f"stream/{job_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """The eight together, opened and closed by one owner."""

    log: TokenLog
    leases: Leases
    accounts: Accounts
    crowds: Crowds
    shares: Shares
    cache: Cache
    presences: Presences
    wakeups: Wakeups
