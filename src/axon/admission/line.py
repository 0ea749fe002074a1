"""The line of a place: the turns that wait for its workers. Knows no tenant and no turn."""

from collections.abc import Sequence
from dataclasses import dataclass

from axon.admission.place import Place
from axon.domain.tenants.account import Bounds, Round, Standing
from axon.ports.live import Accounts


@dataclass(frozen=True, slots=True)
class Line:
    """How many turns wait, over all gateways, and how much they are."""

    waiting: int = 0
    work: float = 0.0
    """Tokens that are set aside for them."""


def line_of(standing: Standing) -> Line:
    """The line that the account of a place tells."""
    return Line(standing.waiting, standing.waiting_work)


async def read_lines(accounts: Accounts, places: Sequence[Place]) -> Sequence[Line]:
    """The lines of these places, in order. It is a round of heartbeats without a beat, which changes nothing."""
    rounds = [Round(account=f"fleet/{place.fleet}", beats=(), bounds=Bounds(), ttl_s=0.0) for place in places]
    return [line_of(standing) for standing in await accounts.beat(rounds)] if rounds else []
