"""Operations on conversations: create, change, add items, erase. Items of turns belong to the turns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from axon.domain.content.item import Item
from axon.domain.ids import new_id
from axon.domain.session.conversation import PREFIX, Conversation, Entry, History
from axon.errors import InvalidInput
from axon.ports.conversation_store import KnownConversations
from axon.runtime.clock import Clock
from axon.sessions.branches import Branches
from axon.sessions.config import SessionsConfig
from axon.sessions.erasure import Erasure
from axon.sessions.history import MAX_STEPS, Histories, no_conversation
from axon.sessions.lookup import Lookup

_MAX_CHARS = 8 << 20


class Conversations:
    """Conversations of tenants; one tenant never finds another's."""

    def __init__(
        self,
        store: KnownConversations,
        lookup: Lookup,
        histories: Histories,
        erasure: Erasure,
        branches: Branches,
        clock: Clock,
        config: SessionsConfig,
    ) -> None:
        self._store, self._lookup, self._histories, self._erasure = store, lookup, histories, erasure
        self.branches, self._clock, self._config = branches, clock, config

    async def create(self, tenant: str, items: Sequence[Item], metadata: Mapping[str, str]) -> Conversation:
        now = self._clock.now()
        made = Conversation(id=new_id(PREFIX, now), tenant=tenant, created_at=now, metadata=metadata)
        first = Entry(ordinal=1, at=now, id=new_id("ent_", now), items=tuple(items)) if items else None
        await self._store.put(made, at=now, first=first)
        history = History(session=made.id, ordinal=1 if items else 0, items=tuple(items))
        await self._histories.remember(tenant, history)
        return made

    async def begin(self, tenant: str, conversation_id: str, metadata: Mapping[str, str], turn_id: str) -> None:
        """Creates a conversation under the given id for its first turn, which is accepted next."""
        now = self._clock.now()
        made = Conversation(id=conversation_id, tenant=tenant, created_at=now, metadata=metadata)
        await self._store.put(made, at=now)
        await self._histories.remember(tenant, History(session=conversation_id), head=turn_id)

    async def take_back(self, conversation_id: str) -> None:
        """Erases a conversation whose first turn was not accepted."""
        await self._histories.drop(conversation_id)
        await self._store.erase([conversation_id])

    async def get(self, tenant: str, conversation_id: str) -> Conversation:
        found = await self._store.get(conversation_id)
        if found is None or found.tenant != tenant:
            raise no_conversation(conversation_id)
        return found

    async def page(
        self, tenant: str, *, limit: int, after: str = "", title: str = "", newest_first: bool = True
    ) -> Sequence[Conversation]:
        """A tenant's conversations, as ``ListedConversations.page`` has them."""
        return await self._store.page(tenant, limit=limit, after=after, title=title, newest_first=newest_first)

    async def update(self, tenant: str, conversation_id: str, metadata: Mapping[str, str]) -> Conversation:
        changed = replace(await self.get(tenant, conversation_id), metadata=metadata)
        if not await self._store.change(conversation_id, metadata, at=self._clock.now()):
            raise no_conversation(conversation_id)  # erased since
        return changed

    async def delete(self, tenant: str, conversation_id: str, *, with_branches: bool = False) -> None:
        """Erases the conversation and the text of its turns, and of its branches if asked. If that fails halfway it can
        be repeated."""
        await self.get(tenant, conversation_id)
        async with await self._histories.lock(conversation_id, wait_s=self._config.busy_wait_s):
            for branch in (await self.branches.sessions(conversation_id))[1:] if with_branches else ():
                await self._erasure.session(branch)
            await self._erasure.session(conversation_id)
            await self._store.erase([conversation_id])

    async def items(self, tenant: str, conversation_id: str) -> tuple[Item, ...]:
        """All items in order."""
        return (await self._histories.peek(tenant, conversation_id)).items

    async def add(self, tenant: str, conversation_id: str, items: Sequence[Item]) -> None:
        """Appends items to the conversation, after a running turn if there is one."""
        await self._histories.require(tenant, conversation_id)
        async with await self._histories.lock(conversation_id, wait_s=self._config.busy_wait_s):
            history, running = await self._histories.look(tenant, conversation_id)
            require_room(history, items)
            now = self._clock.now()
            ordinal = history.ordinal + 2 if running else history.ordinal + 1  # a running turn has the next ordinal
            entry = Entry(ordinal=ordinal, at=now, id=new_id("ent_", now), items=tuple(items))
            await self._histories.drop(conversation_id)
            await self._store.add(conversation_id, entry)
            if not running:
                grown = replace(history, ordinal=ordinal, items=(*history.items, *items))
                await self._histories.remember(tenant, grown)

    async def remove(self, tenant: str, conversation_id: str, item_id: str) -> None:
        """Removes an item; later prompts do not contain it."""
        await self.get(tenant, conversation_id)
        async with await self._histories.lock(conversation_id, wait_s=self._config.busy_wait_s):
            await self._lookup.behind_barrier()  # then the store has every session that continues this one
            await self._histories.drop_with_branches(conversation_id)
            await self._store.remove_item(conversation_id, item_id)
            await self._histories.drop_with_branches(conversation_id)


def require_room(history: History, items: Sequence[Item]) -> None:
    """Raises ``InvalidInput`` if the items would make the conversation longer than can be read at once."""
    combined = (*history.items, *items)
    if len(combined) > MAX_STEPS or sum(len(item.text) for item in combined) > _MAX_CHARS:
        message = f"A conversation holds at most {MAX_STEPS} items and {_MAX_CHARS} characters; begin another one."
        raise InvalidInput(message, code="conversation_full")
