"""A reader's place in a stream, as its request says it: ``after`` or ``Last-Event-ID``. Knows no route."""

from starlette.requests import Request

from axon.errors import InvalidInput

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
