"""A client asks for its turn's end: the turn is stopped, and told as it stands then. Knows no kind of turn."""

from contextlib import suppress

from axon.domain.turn import Turn, TurnState
from axon.errors import Busy
from axon.gateway.turn.context import Gateway

_STOP_S = 5.0


async def stopped(gateway: Gateway, turn: Turn) -> Turn:
    """The turn after its stop; one that has ended stays as it is. One that takes its time is told as it stands."""
    if turn.state.terminal:
        return turn
    lookup = gateway.sessions.lookup
    with suppress(Busy):
        turn = await lookup.stopped(turn.id, wait_s=_STOP_S) or turn
        await lookup.kept(turn.id, wait_s=_STOP_S)  # what was told must outlive a crash
    if turn.state is TurnState.CANCELLED:
        gateway.metrics.cancelled.labels(cause="asked").inc()
    return turn
