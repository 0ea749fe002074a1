"""A conversation with its branches: the sessions that go on from one of its turns or from its start. Knows no API."""

from collections.abc import Sequence

from axon.domain.turn import Turn
from axon.ports.store import SessionTurns
from axon.sessions.lookup import Lookup

_MAX_SESSIONS = 1_000
"""Largest number of branches that are looked for."""


class Branches:
    """Reads the turns of a conversation and of all its branches from the store, behind a barrier."""

    def __init__(self, turns: SessionTurns, lookup: Lookup) -> None:
        self._turns, self._lookup = turns, lookup

    async def sessions(self, conversation_id: str) -> Sequence[str]:
        """The ids of the conversation and of the sessions that branch off it, directly or from a branch."""
        await self._lookup.behind_barrier()
        found = [conversation_id]
        for session in found:  # grows while it is gone through
            if len(found) < _MAX_SESSIONS:
                found += [each for each in await self._turns.branches(session) if each not in found]
        return found[:_MAX_SESSIONS]

    async def turns(self, conversation_id: str, *, limit: int, after: str = "") -> Sequence[Turn]:
        """The turns of the conversation and its branches in the order in which they were opened, those that run, failed
        or were cancelled too: at most ``limit`` past the turn ``after``."""
        there = await self._turns.told(await self.sessions(conversation_id), limit=limit, after=after)
        now = [turn if turn.state.terminal else await self._lookup.find(turn.id) for turn in there]
        return [turn for turn in now if turn is not None and not turn.job.purged]
