"""What a client sends over a WebSocket, and the events that refuse it. No I/O, no clock; knows no response's content.

``response.create`` and ``response.steer`` are OpenAI's. ``response.retrieve`` is ours: it continues a stream.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from axon.errors import InvalidInput

CREATE, RETRIEVE, CANCEL, STEER = "response.create", "response.retrieve", "response.cancel", "response.steer"
_KNOWN = (CREATE, RETRIEVE, CANCEL, STEER)
_MAX_NAME_CHARS = 255
_MAX_STEER_CHARS = 64 << 10
"""The input of a steer event is repeated in its refusal if it is at most this long."""


class _Head(msgspec.Struct):
    """The fields of an event that the WebSocket itself reads; a response's own are read later."""

    type: str
    stream_id: str | None = None
    response_id: str | None = None
    starting_after: int | None = None
    idempotency_key: str | None = None
    previous_response_id: str | None = None
    input: msgspec.Raw = msgspec.Raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientEvent:
    """One event of a client."""

    type: str
    stream_id: str | None = None
    """The lane that the client names; events with the same one are handled one after another."""
    response_id: str = ""
    starting_after: str = ""
    """The number of the last event that the client has, in digits; empty if it wants all of them."""
    idempotency_key: str = ""
    body: bytes = b""
    """The whole message, which is the body of a ``response.create``."""


_decode = msgspec.json.Decoder(_Head).decode


def event_of(text: str) -> ClientEvent:
    """Returns the event in a message; raises ``InvalidInput`` that says what is wrong with it."""
    body = text.encode()
    try:
        head = _decode(body)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"The event is not valid: {error}.", code="invalid_event") from None
    except (msgspec.DecodeError, RecursionError):
        raise InvalidInput("The message is not valid JSON.", code="invalid_json") from None
    if head.type not in _KNOWN:
        known = ", ".join(f"'{each}'" for each in _KNOWN)
        raise InvalidInput(f"The event's type must be one of {known}.", code="unknown_event", param="type")
    for name in ("stream_id", "idempotency_key", "response_id", "previous_response_id"):
        if len(getattr(head, name) or "") > _MAX_NAME_CHARS:
            raise InvalidInput(f"'{name}' has at most {_MAX_NAME_CHARS} characters.", param=name)
    if head.type in (RETRIEVE, CANCEL) and not head.response_id:
        raise InvalidInput("'response_id' is missing.", param="response_id", code="missing_required_parameter")
    return ClientEvent(
        type=head.type,
        stream_id=head.stream_id,
        response_id=head.response_id or "",
        starting_after="" if head.starting_after is None else str(head.starting_after),
        idempotency_key=head.idempotency_key or "",
        body=body,
    )


def steer_refusal(event: ClientEvent) -> dict[str, Any]:
    """Returns the body of the ``response.steer.failed`` event, which gives the input back to the client."""
    head = _decode(event.body)
    steer: dict[str, Any] = {"previous_response_id": head.previous_response_id or "", "input": []}
    if 0 < len(bytes(head.input)) <= _MAX_STEER_CHARS:
        steer["input"] = head.input
    message = "This server does not steer a running response; send 'response.create' when it has ended."
    error = {"code": "steering_not_supported", "message": message, "type": "invalid_request_error"}
    return {"error": error, "steer": steer}
