"""A reader's place in a stream, as its request says it: ``after`` or ``Last-Event-ID``. Knows no route."""

from starlette.requests import Request

from axon.domain.turn import Turn, TurnState
from axon.errors import InvalidInput
from axon.sessions.lookup import Lookup

LAST_EVENT_ID = "Last-Event-ID"
_MAX_SEQ_DIGITS = 15


def last_event_id(request: Request) -> int:
    """The seq at which a reader of event ids has left; 0 when it has read nothing."""
    return seq_of(request.headers.get(LAST_EVENT_ID) or "0", LAST_EVENT_ID)


def seq_of(text: str, name: str) -> int:
    """A seq that a client sends."""
    if not (len(text) <= _MAX_SEQ_DIGITS and text.isascii() and text.isdigit()):
        raise InvalidInput(f"'{name}' must be a token's seq: a whole number, 0 or more.", param=name)
    return int(text)


async def require_place(lookup: Lookup, turn: Turn, after: int, name: str) -> None:
    """Refuses a place past the last token of a complete answer, which no reader can have come to.

    The store decides. While the turn runs nobody is refused, and a log that says less than the store proves nothing:
    a log may have lost its tail after this reader has read it.
    """
    if not _is_past(turn, after):
        return
    stored = await lookup.stored(turn.id)
    if stored is not None and _is_past(stored, after):
        last = stored.usage.output_tokens
        raise InvalidInput(f"'{name}' is {after}, but this stream is complete with {last} tokens.", param=name)


def _is_past(turn: Turn, after: int) -> bool:
    return turn.state is TurnState.COMPLETED and after > turn.usage.output_tokens
