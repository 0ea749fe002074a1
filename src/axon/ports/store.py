"""Durable records. Each aggregate has its own narrow port; a store opens and closes them together."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from axon.domain.access import Access
from axon.domain.conversation import Conversation, Entry
from axon.domain.key import Key
from axon.domain.storage import Stored
from axon.domain.tenant import Plan, Tenant
from axon.domain.turn import Turn, TurnState
from axon.domain.usage import UsageSum
from axon.errors import DependencyDown


class KeyLookup(Protocol):
    """API keys, as whoever is asked to let somebody in needs them."""

    async def access(self, key_id: str) -> Access | None:
        """The key with its tenant and plan, in one read."""

    async def touch(self, used_at: Mapping[str, float]) -> None:
        """Notes when keys were last used; what is noted already and later stays."""


class KeyStore(KeyLookup, Protocol):
    """API keys. None is ever taken away: what it did stays its own."""

    async def add(self, key: Key) -> None:
        """Raises ``Conflict`` when there is one of this id."""

    async def find(self, key_id: str) -> Key | None: ...

    async def all(self, *, tenant: str | None = None) -> Sequence[Key]:
        """Every key, or a tenant's, the oldest first."""

    async def revoke(self, key_id: str, *, at: float) -> bool:
        """False when there is no such key; a revoked key keeps its first time."""

    async def revoked(self, key_ids: Collection[str]) -> frozenset[str]:
        """Those of the keys that are revoked."""

    async def rotate(self, new: Key, *, until: float) -> bool:
        """Adds a key in place of its ``previous`` one, which is good until then at most; False if there is none."""


class TenantStore(Protocol):
    """Tenants."""

    async def add(self, tenant: Tenant) -> Tenant:
        """The tenant as it was made, in the smallest free place; raises ``Conflict`` when there is one of this id, or
        was one."""

    async def get(self, tenant_id: str) -> Tenant | None: ...

    async def all(self) -> Sequence[Tenant]:
        """Every tenant, the oldest first."""

    async def change(self, old: Tenant, new: Tenant) -> bool:
        """Sets what can be set, unless it is no longer as it was: False then. Id, place and age stay."""

    async def remove(self, tenant_id: str, *, at: float) -> bool:
        """Forgets it; its place is free again. What it had is kept under its id, which nobody else is given."""


class PlanStore(Protocol):
    """Plans."""

    async def add(self, plan: Plan) -> bool:
        """False when there is one of this name; it stays as it is."""

    async def change(self, old: Plan, new: Plan) -> bool:
        """Sets its limits, unless they are no longer as they were: False then."""

    async def get(self, name: str) -> Plan | None: ...

    async def all(self) -> Sequence[Plan]:
        """Every plan, by its name."""

    async def remove(self, name: str) -> bool: ...


class UsageStore(Protocol):
    """What turns cost, summed up; a turn counts from its end."""

    async def sums(
        self, *, since: float, until: float, tenant: str | None = None, by_day: bool = False
    ) -> Sequence[UsageSum]:
        """Of each tenant that had a turn end in that time, by its id and day."""


class StorageStore(Protocol):
    """How much is kept for a tenant."""

    async def stored(self, tenant: str) -> Stored:
        """What is there now: conversations with their items and metadata, and retained turns that have their words."""


class TurnStore(Protocol):
    """Turns, written from the journal."""

    async def apply(self, turns: Sequence[Turn]) -> None:
        """Upserts each turn that supersedes the stored one; late and repeated records change nothing."""

    async def get(self, turn_id: str) -> Turn | None: ...

    async def unfinished(self, *, limit: int) -> Sequence[Turn]:
        """Turns that were accepted and have not ended, the oldest first."""

    async def purge(self, *, ended_before: float) -> int:
        """Forgets prompt and text of ended turns (not of retained ones); their usage stays. Returns how many."""


class SessionTurns(TurnStore, Protocol):
    """Turns, as the sessions need them."""

    async def entries(self, session: str, *, limit: int) -> Sequence[Entry]:
        """What was said in the session's turns, in order, the last ``limit`` of them; nothing in purged ones."""

    async def states(self, session: str) -> Mapping[str, TurnState]:
        """How each of the session's turns stands, by its id."""

    async def branches(self, session: str) -> Sequence[str]:
        """Other sessions that went on from a turn of this one: they hold its words too."""

    async def erase_turn(self, turn_id: str) -> int:
        """Forgets prompt and text of one ended turn, and of no other of its session. Returns how many."""

    async def erase_session(self, session: str) -> int:
        """Forgets prompt and text of a session's ended turns. Returns how many."""

    async def purge_idle(self, *, before: float) -> int:
        """Forgets prompt and text of retained turns whose session nobody has gone on with since. Returns how many."""


class TurnWriter(Protocol):
    """The part of a turn store that the persister needs."""

    async def write(self, turns: Sequence[Turn]) -> Sequence[DependencyDown | None]:
        """Commits the turns together; what became of each, in order. ``record_refused`` is for good."""


class Markers(Protocol):
    """How far the journal has been written: a barrier's marker is noted after everything before it."""

    async def put(self, marker_ids: Sequence[str], *, at: float) -> None:
        """Notes them, twice if need be, and forgets those that nobody waits for any more."""

    async def seen(self, marker_id: str) -> bool: ...


class ConversationStore(Protocol):
    """Conversations and the items that were added to them by hand. What was said in turns is the turns' own."""

    async def put(self, conversation: Conversation, *, at: float, first: Entry | None = None) -> None:
        """Makes it, with its first items if it has any."""

    async def change(self, conversation_id: str, metadata: Mapping[str, str], *, at: float) -> bool:
        """Sets its metadata anew; False when there is none of this name."""

    async def get(self, conversation_id: str) -> Conversation | None: ...

    async def add(self, conversation_id: str, entry: Entry) -> None: ...

    async def entries(self, conversation_id: str, *, limit: int) -> tuple[Sequence[Entry], frozenset[str]]:
        """What was added, the last ``limit`` of it, and the ids of all items that were taken away."""

    async def remove_item(self, conversation_id: str, item_id: str) -> None:
        """Takes one item away, whoever said it."""

    async def erase(self, conversation_ids: Sequence[str]) -> None:
        """Forgets them and all that was added to them."""


class IdleConversations(ConversationStore, Protocol):
    """Conversations, as their retention needs them."""

    async def idle(self, *, before: float, limit: int) -> Sequence[str]:
        """Conversations that nobody has added to or had a turn in since then."""


class Tombstones(Protocol):
    """Marks of turns and sessions whose words must not come back, whatever is still on its way to the store."""

    async def put(self, marks: Sequence[str], *, at: float) -> None:
        """From now on the store takes their turns without words."""

    async def purge(self, *, before: float) -> int:
        """Forgets the old ones: nothing of theirs is on its way any more."""


class Store(Protocol):
    """The aggregates."""

    @property
    def keys(self) -> KeyStore: ...

    @property
    def tenants(self) -> TenantStore: ...

    @property
    def plans(self) -> PlanStore: ...

    @property
    def usage(self) -> UsageStore: ...

    @property
    def storage(self) -> StorageStore: ...

    @property
    def turns(self) -> SessionTurns: ...

    @property
    def markers(self) -> Markers: ...

    @property
    def conversations(self) -> IdleConversations: ...

    @property
    def tombstones(self) -> Tombstones: ...

    async def ping(self) -> None:
        """Raises ``DependencyDown`` when the store does not answer."""
