"""A reader's position in a stream, from its request's ``after`` or ``Last-Event-ID``. Knows no route."""

from starlette.requests import Request

from axon.domain.reply import MessagesReply
from axon.domain.turn import Turn, TurnState
from axon.errors import InvalidInput
from axon.sessions.lookup import Lookup

LAST_EVENT_ID = "Last-Event-ID"
_MAX_SEQ_DIGITS = 15


def last_event_id(request: Request) -> int:
    """Returns the seq in the Last-Event-ID header, the last token that the client has; 0 without the header."""
    return seq_of(request.headers.get(LAST_EVENT_ID) or "0", LAST_EVENT_ID)


def seq_of(text: str, name: str) -> int:
    """Returns the seq that a client sent in the parameter ``name``; raises ``InvalidInput`` if it is none."""
    if not (len(text) <= _MAX_SEQ_DIGITS and text.isascii() and text.isdigit()):
        raise InvalidInput(f"'{name}' must be a token's seq: a whole number, 0 or more.", param=name)
    return int(text)


async def check_position(lookup: Lookup, turn: Turn, after: int, name: str) -> None:
    """Raises ``InvalidInput`` if ``after`` is beyond the last number of a complete answer.

    The store decides, not the log: a log may have lost its tail after this reader has read it. While the turn runs, no
    position is refused.
    """
    if not _is_past(turn, after):
        return
    stored = await lookup.stored(turn.id)
    if stored is not None and _is_past(stored, after):
        last = stored.usage.output_tokens
        raise InvalidInput(f"'{name}' is {after}, but this stream is complete with {last} tokens.", param=name)


def _is_past(turn: Turn, after: int) -> bool:
    return turn.state is TurnState.COMPLETED and after > _last_number(turn)


def _last_number(turn: Turn) -> int:
    """Returns the seq of a complete answer's last token; the end of a message has a number after it."""
    return turn.usage.output_tokens + isinstance(turn.job.reply, MessagesReply)
