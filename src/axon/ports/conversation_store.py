"""Conversations as a store keeps them. Knows no turn's text."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from axon.domain.session.conversation import Conversation, Entry


class ConversationStore(Protocol):
    """Conversations and the items added to them by hand. Items of turns belong to the turns."""

    async def put(self, conversation: Conversation, *, at: float, first: Entry | None = None) -> None:
        """Creates a conversation, with its first items if it has any."""

    async def change(self, conversation_id: str, metadata: Mapping[str, str], *, at: float) -> bool:
        """Replaces its metadata; False when there is no such conversation."""

    async def get(self, conversation_id: str) -> Conversation | None: ...

    async def add(self, conversation_id: str, entry: Entry) -> None: ...

    async def entries(self, conversation_id: str, *, limit: int) -> tuple[Sequence[Entry], frozenset[str]]:
        """The last ``limit`` additions, and the ids of all removed items."""

    async def remove_item(self, conversation_id: str, item_id: str) -> None:
        """Removes one item, from an addition or from a turn."""

    async def erase(self, conversation_ids: Sequence[str]) -> None:
        """Deletes conversations with all that was added to them."""


class ListedConversations(Protocol):
    """Conversations, as a list of them needs them."""

    async def page(
        self, tenant: str, *, limit: int, after: str = "", title: str = "", newest_first: bool = True
    ) -> Sequence[Conversation]:
        """At most ``limit`` of a tenant's conversations past the id ``after``, in the order of their ids, which is that
        of their creation. With ``title``, those alone whose metadata has a ``title`` that contains it; case does not
        count."""


class KnownConversations(ConversationStore, ListedConversations, Protocol):
    """Conversations, as the sessions need them."""


class IdleConversations(KnownConversations, Protocol):
    """Conversations, as retention needs them."""

    async def idle(self, *, before: float, limit: int) -> Sequence[str]:
        """At most ``limit`` conversations without an addition or a turn since ``before``."""
