"""Finds a stored or running response of the caller's own, and a reader's position in its events. Knows no route."""

from starlette.requests import Request

from axon.domain.reply import ResponseReply
from axon.domain.turn import Turn, TurnState
from axon.errors import InvalidInput, NotFound
from axon.gateway.responses import events
from axon.gateway.turn.context import Gateway, find_turn, gateway_of, reader_of

_MAX_DIGITS = 15


async def find(request: Request, response_id: str, *, unstored: bool = False) -> Turn:
    """Returns a response of the caller's own tenant; raises the same ``NotFound`` for any other id.

    With ``unstored`` it finds responses that are not stored too: a client that lost such a stream may resume it.
    """
    turn = await find_turn(request, response_id)
    if (
        turn is None
        or turn.job.purged
        or not isinstance(turn.job.reply, ResponseReply)
        or (turn.job.forget and not unstored)
    ):
        raise NotFound(f"Response with id '{response_id}' not found.", code="response_not_found", param="response_id")
    return turn


async def resumed(request: Request, response_id: str, starting_after: str) -> tuple[Turn, int]:
    """Returns a response that a reader comes back to, and the number of the last event that the reader has.

    The number is -1 if ``starting_after`` is empty. Raises ``InvalidInput`` for one past the end of a complete
    response.
    """
    gateway = gateway_of(request)
    turn = await find(request, response_id, unstored=True)
    after = _number(starting_after)
    await _check_number(gateway, turn, after)
    await gateway.follower.arrive(response_id, reader_of(request, turn.job))
    gateway.metrics.streams.resumes.labels(result="ok").inc()
    return turn, after


async def _check_number(gateway: Gateway, turn: Turn, after: int) -> None:
    """Raises ``InvalidInput`` if the number ``after`` is beyond the last event of a complete response.

    The store decides, not the log, which may have lost its tail. While a response runs, no number is refused.
    """
    if not _is_past(turn, after):
        return
    stored = await gateway.sessions.lookup.stored(turn.id)
    if stored is not None and _is_past(stored, after):
        raise InvalidInput(
            f"'starting_after' is {after}, but this response is complete, and its last event is number "
            f"{events.last_number(stored)}.",
            param="starting_after",
        )


def _is_past(turn: Turn, after: int) -> bool:
    return turn.state is TurnState.COMPLETED and after >= 0 and after > events.last_number(turn)


def _number(text: str) -> int:
    """Returns the event number that the client sent; -1 if it sent none."""
    if not text:
        return -1
    if not (len(text) <= _MAX_DIGITS and text.isascii() and text.isdigit()):
        raise InvalidInput("'starting_after' must be an event's number: 0 or more.", param="starting_after")
    return int(text)
