"""Durable records. Each aggregate has its own narrow port; a store opens and closes them together."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from axon.domain.audit import AuditEntry, AuditPage
from axon.domain.billing.replica_use import ReplicaUse
from axon.domain.billing.usage_sum import UsageSum
from axon.domain.census import Census
from axon.domain.registry.change import Change
from axon.domain.registry.record import Edit, Record
from axon.domain.registry.snapshot import Snapshot
from axon.domain.session.conversation import Entry
from axon.domain.session.pin import LastPin
from axon.domain.tenants.access import Access
from axon.domain.tenants.key import Key
from axon.domain.tenants.storage import Stored
from axon.domain.tenants.tenant import Plan, Tenant
from axon.domain.tenants.web_session import WebSession
from axon.domain.turn import Turn, TurnState, Unfinished
from axon.errors import DependencyDown
from axon.ports.batch_store import BatchStore, FileRecords
from axon.ports.conversation_store import IdleConversations


class KeyLookup(Protocol):
    """API keys, as authentication needs them."""

    async def access(self, key_id: str) -> Access | None:
        """The key with its tenant and plan, in one read."""

    async def touch(self, used_at: Mapping[str, float]) -> None:
        """Records when keys were last used; a later recorded time stays."""


class KeyStore(KeyLookup, Protocol):
    """API keys. None is ever deleted, so that what was done with it stays attributable. ``entry`` is what the audit
    trail gets, in the transaction of the change and only if there is one; so too of tenants and plans."""

    async def add(self, key: Key, *, entry: AuditEntry | None = None) -> None:
        """Adds a key; raises ``Conflict`` when the id exists."""

    async def find(self, key_id: str) -> Key | None: ...

    async def all(self, *, tenant: str | None = None) -> Sequence[Key]:
        """All keys, or one tenant's, the oldest first."""

    async def revoke(self, key_id: str, *, at: float, entry: AuditEntry | None = None) -> bool:
        """Revokes a key; False when there is none. A revoked key keeps its first time."""

    async def revoked(self, key_ids: Collection[str]) -> frozenset[str]:
        """The subset of the keys that are revoked."""

    async def rotate(self, new: Key, *, until: float, entry: AuditEntry | None = None) -> bool:
        """Adds a key that replaces its ``previous`` one, which expires at ``until`` at the latest; False if there is
        none."""


class WebSessionStore(Protocol):
    """Web sessions: browsers that are signed in as an API key."""

    async def open(self, session: WebSession, *, now: float, most: int) -> None:
        """Adds a session. Sessions of its key and its user beyond the ``most`` newest are ended, and so are all that
        are over."""

    async def find(self, session_id: str) -> WebSession | None:
        """The session, which may be over."""

    async def renew(self, session_id: str, *, ends_at: float) -> None:
        """Lets a session last longer; never shortens it, and begins none that has ended."""

    async def end(self, session_id: str) -> bool:
        """Ends a session; False when there is none."""


class TenantStore(Protocol):
    """Tenants."""

    async def add(self, tenant: Tenant, *, entry: AuditEntry | None = None) -> Tenant:
        """Adds the tenant under the lowest free number (``place``) and returns it; raises ``Conflict`` when the id
        is or was in use."""

    async def get(self, tenant_id: str) -> Tenant | None: ...

    async def all(self) -> Sequence[Tenant]:
        """Every tenant, the oldest first."""

    async def change(self, old: Tenant, new: Tenant, *, entry: AuditEntry | None = None) -> bool:
        """Compare-and-set: replaces ``old`` by ``new``; False when it has changed meanwhile. Id, place and creation
        time stay."""

    async def remove(self, tenant_id: str, *, at: float, entry: AuditEntry | None = None) -> bool:
        """Removes the tenant and frees its number. Its data is kept under its id, which is never given again."""


class PlanStore(Protocol):
    """Plans."""

    async def add(self, plan: Plan, *, entry: AuditEntry | None = None) -> bool:
        """Adds a plan; False, with nothing changed, when the name exists."""

    async def change(self, old: Plan, new: Plan, *, entry: AuditEntry | None = None) -> bool:
        """Compare-and-set of the plan's limits; False when they have changed meanwhile."""

    async def get(self, name: str) -> Plan | None: ...

    async def all(self) -> Sequence[Plan]:
        """All plans, sorted by name."""

    async def remove(self, name: str, *, entry: AuditEntry | None = None) -> bool: ...


class RegistryStore(Protocol):
    """The registry: models, versions, deployments, aliases and prices, and the audit trail of their changes.

    Its revision R counts its changes without gaps. A record's own revision is the number of its last change, so that a
    name that was removed and added again never has a revision that it had before.
    """

    async def snapshot(self) -> Snapshot:
        """Everything at one revision."""

    async def revision(self) -> int:
        """R; 0 for a registry that was never changed."""

    async def write(
        self, old: Record | None, new: Record | None, *, actor: str, at: float, over: int | None = None
    ) -> int | None:
        """Compare-and-set: replaces ``old`` by ``new``, which has the same kind and name; adds when ``old`` is None,
        removes when ``new`` is None. Returns R, which is also the record's new revision; None, with nothing changed,
        when the stored record has another revision than ``old``, or R is not ``over``. Fields of a later release in
        the stored record stay. The audit row is written in the same transaction."""

    async def write_all(self, edits: Sequence[Edit], *, actor: str, at: float, over: int | None = None) -> int | None:
        """Several changes in one transaction, all or none. They are numbered in their order; the last one is R."""

    async def changes(self, *, after: int, limit: int, kind: str = "", name: str = "") -> Sequence[Change]:
        """At most ``limit`` changes with a number above ``after``, in order; fewer where they are large, and none only
        where there are none. With ``kind`` and ``name``, those of one record."""

    async def removals(self, *, kind: str, name: str) -> Sequence[Change]:
        """The changes that removed a record of this kind and name, in order."""


class AuditStore(Protocol):
    """The audit trail: what administrators changed, and the registry's changes among it. Nothing of it is deleted."""

    async def add(self, entry: AuditEntry) -> None:
        """Adds an entry of what changes no record here."""

    async def page(self, *, limit: int, after: str = "", kind: str = "", text: str = "") -> AuditPage | None:
        """At most ``limit`` entries that are older than the entry ``after``, the newest first; fewer where they are
        large, and none only where there are none. With ``kind``, of this kind of record alone; with ``text``, those
        that have it in their name, actor, kind, action or record; the case of ASCII letters does not count. None if
        there is no entry ``after``."""


class UsageStore(Protocol):
    """Sums of usage; a turn counts at the time of its end, a replica's time when it began."""

    async def add_replicas(self, uses: Sequence[ReplicaUse]) -> None:
        """Adds replicas' time that tenants pay for. Idempotent: one that is there has its seconds raised, if they are
        more, and nothing else changed."""

    async def sums(
        self,
        *,
        since: float,
        until: float,
        tenant: str | None = None,
        by_day: bool = False,
        by_model: bool = False,
    ) -> Sequence[UsageSum]:
        """One sum per tenant over the turns that ended from ``since`` to ``until``; per day with ``by_day``, and per
        deployment with ``by_model``. Replicas' time that began then is in them; who has no turns has a sum too."""


class StorageStore(Protocol):
    """Amounts stored for tenants."""

    async def census(self, *, since: float) -> Census:
        """Counts what there is of all tenants; of sessions, those with a turn that was opened since then."""

    async def stored(self, tenant: str) -> Stored:
        """Measures what is stored now: conversations with their items and metadata, and retained turns with text."""


class TurnStore(Protocol):
    """Turns, written from the journal."""

    async def apply(self, turns: Sequence[Turn]) -> None:
        """Upserts each turn that supersedes the stored one; late and repeated records change nothing."""

    async def get(self, turn_id: str) -> Turn | None: ...

    async def unfinished(self, *, limit: int, after: tuple[float, str] | None = None) -> Sequence[Turn]:
        """Turns that were accepted and have not ended, the oldest first; with ``after`` only those past this time of
        opening and id. Empty only when there are no more."""

    async def purge(self, *, ended_before: float) -> int:
        """Erases prompt and text of ended turns that are not retained; their usage stays. Returns how many."""


class UnfinishedTurns(Protocol):
    """Turns, as whoever runs the fleet counts them."""

    async def count_unfinished(self) -> Sequence[Unfinished]:
        """Number of turns that were accepted and have not ended, by deployment and version."""

    async def first_unfinished(self, deployment: str, version: str) -> str | None:
        """Tenant of the oldest turn of a version that was accepted and has not ended; None where there is none."""


class EndedTurns(Protocol):
    """Turns that have ended, as whoever looks at their times needs them."""

    async def ended(self, *, since: float, limit: int) -> Sequence[Turn]:
        """Turns of all tenants that ended from ``since`` on, the last first, without their text: as purged turns, with
        their ledgers. Those that are purged already may be missing."""


class SessionTurns(TurnStore, UnfinishedTurns, EndedTurns, Protocol):
    """Turns, as the sessions need them."""

    async def retained(
        self, tenant: str, *, prefix: str, limit: int, deployment: str = "", after: str = "", newest_first: bool = False
    ) -> Sequence[Turn]:
        """A tenant's retained turns of no session that are complete and have text, whose ids begin with ``prefix``:
        those past the turn ``after``, in the order of their opening; with ``deployment``, its turns alone."""

    async def entries(self, session: str, *, limit: int) -> Sequence[Entry]:
        """The session's last ``limit`` turns as entries, in order; purged turns have no items."""

    async def states(self, session: str) -> Mapping[str, TurnState]:
        """State of each of the session's turns, by turn id."""

    async def branches(self, session: str) -> Sequence[str]:
        """Other sessions that continue a turn of this one, and so hold its text too, or that begin at its start."""

    async def told(self, sessions: Sequence[str], *, limit: int, after: str = "") -> Sequence[Turn]:
        """The turns of these sessions in the order of their opening, whatever became of them: at most ``limit`` past
        the turn ``after``. Those without text are left out."""

    async def erase_turn(self, turn_id: str) -> int:
        """Erases prompt and text of one ended turn, and of no other of its session. Returns how many."""

    async def erase_session(self, session: str) -> int:
        """Erases prompt and text of a session's ended turns, and their pins' keys. Returns how many."""

    async def purge_idle(self, *, before: float) -> int:
        """Erases prompt and text of retained turns whose session has not been used since ``before``. Returns how
        many."""


class PinnedSessions(Protocol):
    """The versions that sessions are pinned to, as their turns say. Read it behind a barrier."""

    async def last_pin(self, key: str, *, session: str = "") -> LastPin | None:
        """What the turns under a pin's key say of it. Where there is none, the newest turn that an earlier release
        wrote for the session counts as its first."""

    async def count(self, version: str, *, since: float) -> int:
        """Number of sessions that are pinned to a version and had a turn since then."""

    async def keys(self, session: str) -> Sequence[str]:
        """Keys of the pins that a session's turns have."""


class TurnWriter(Protocol):
    """The part of a turn store that the persister needs."""

    async def write(self, turns: Sequence[Turn]) -> Sequence[DependencyDown | None]:
        """Commits the turns together; returns each one's failure or None, in order. ``record_refused`` is permanent."""


class Markers(Protocol):
    """Markers of the journal's barriers: each is written after all records before it."""

    async def put(self, marker_ids: Sequence[str], *, at: float) -> None:
        """Writes the markers (idempotent), and deletes old ones that nobody waits for any more."""

    async def seen(self, marker_id: str) -> bool: ...


class Terms(Protocol):
    """Terms of control's leaders (fencing tokens). Whoever takes orders from leaders refuses those of a lower term."""

    async def take(self) -> int:
        """Begins a term: a number above every one that was taken before, by any process."""


class Tombstones(Protocol):
    """Tombstones of erased turns and sessions: records still on their way to the store arrive without their text."""

    async def put(self, marks: Sequence[str], *, at: float) -> None:
        """Adds tombstones; from now on the store takes their turns without text."""

    async def since(self, at: float) -> Sequence[str]:
        """The tombstones put at this Unix time or later."""

    async def purge(self, *, before: float) -> int:
        """Deletes tombstones from before then: no record of theirs is on its way any more."""


class Store(Protocol):
    """All aggregates."""

    @property
    def keys(self) -> KeyStore: ...

    @property
    def web_sessions(self) -> WebSessionStore: ...

    @property
    def tenants(self) -> TenantStore: ...

    @property
    def plans(self) -> PlanStore: ...

    @property
    def registry(self) -> RegistryStore: ...

    @property
    def audit(self) -> AuditStore: ...

    @property
    def usage(self) -> UsageStore: ...

    @property
    def storage(self) -> StorageStore: ...

    @property
    def turns(self) -> SessionTurns: ...

    @property
    def pinned(self) -> PinnedSessions: ...

    @property
    def markers(self) -> Markers: ...

    @property
    def terms(self) -> Terms: ...

    @property
    def conversations(self) -> IdleConversations: ...

    @property
    def tombstones(self) -> Tombstones: ...

    @property
    def files(self) -> FileRecords: ...

    @property
    def batches(self) -> BatchStore: ...

    async def ping(self) -> None:
        """Raises ``DependencyDown`` when the store does not answer."""
