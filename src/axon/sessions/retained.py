"""Lists the turns of a tenant that are kept and belong to no session, such as stored chats. Knows no API."""

from collections.abc import Sequence

from axon.domain.turn import Turn
from axon.ports.store import SessionTurns
from axon.sessions.lookup import Lookup


class Retained:
    """Reads retained turns from the store, behind a barrier."""

    def __init__(self, turns: SessionTurns, lookup: Lookup) -> None:
        self._turns, self._lookup = turns, lookup

    async def page(
        self, tenant: str, *, prefix: str, limit: int, deployment: str = "", after: str = "", newest_first: bool = False
    ) -> Sequence[Turn]:
        """A tenant's retained turns, as ``SessionTurns.retained`` has them."""
        await self._lookup.behind_barrier()
        return await self._turns.retained(
            tenant, prefix=prefix, limit=limit, deployment=deployment, after=after, newest_first=newest_first
        )
