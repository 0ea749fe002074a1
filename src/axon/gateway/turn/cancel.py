"""Cancels a turn because its client asks for it. Knows no API."""

from contextlib import suppress

from axon.domain.turn import Turn, TurnState
from axon.errors import Busy
from axon.gateway.turn.context import Gateway

_STOP_S = 5.0
"""The route waits this long for the turn to end, and as long again for the store to have its end."""


async def stopped(gateway: Gateway, turn: Turn) -> Turn:
    """Cancels the turn and returns it as it is then; a turn that takes too long to stop is returned as it was.

    A turn that has ended before stays as it is.
    """
    if turn.state.terminal:
        return turn
    lookup = gateway.sessions.lookup
    with suppress(Busy):
        turn = await lookup.stopped(turn.id, wait_s=_STOP_S, asked=True) or turn
        await lookup.kept(turn.id, wait_s=_STOP_S)  # the client is answered only with what a crash cannot undo
    if turn.state is TurnState.CANCELLED:
        gateway.metrics.turns.cancelled.labels(cause="asked").inc()
    return turn
