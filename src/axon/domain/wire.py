"""Encodes values as versioned msgpack and decodes them. Fields of a later version are kept, not dropped."""

from dataclasses import fields
from typing import Any, TypeVar

import msgspec

from axon.domain import reply
from axon.domain.job import Job
from axon.domain.log.chunk import Chunk
from axon.domain.presence import Presence
from axon.domain.session.residence import Residence
from axon.domain.turn import Turn

Value = Job | Chunk | Turn | Presence | Residence
T = TypeVar("T", Job, Chunk, Turn, Presence, Residence)
_NAMES: dict[type, dict[str, None]] = {
    kind: {field.name: None for field in fields(kind) if field.name != "extra"} for kind in T.__constraints__
}
"""The fields of each kind, in the order they are written."""
_OMITTED = "vectors"
"""A field of chunks that is written only where it is not empty, since nearly no chunk has it."""
_ENCODER = msgspec.msgpack.Encoder()


def _plain(value: Value) -> dict[str, Any]:
    body: dict[str, Any] = {name: getattr(value, name) for name in _NAMES[type(value)]}
    if isinstance(value, Job):
        body["reply"] = reply.to_wire(value.reply)
    elif isinstance(value, Chunk):
        if not value.vectors:
            del body[_OMITTED]
    elif isinstance(value, Turn):
        body["job"] = _plain(value.job)
    return {**value.extra, **body} if value.extra else body


def _value(kind: type[T], raw: dict[str, Any]) -> T:
    known = _NAMES[kind]
    if kind is Job and isinstance(raw.get("reply"), dict):
        raw = {**raw, "reply": reply.from_wire(raw["reply"])}
    if kind is not Turn and raw.keys() <= known.keys():  # the fast path: nearly all values, and every chunk of a stream
        return msgspec.convert(raw, kind)
    body = {name: value for name, value in raw.items() if name in known}
    if kind is Turn and isinstance(body.get("job"), dict):
        body["job"] = _value(Job, body["job"])
    extra = {name: value for name, value in raw.items() if name not in known}
    return msgspec.convert({**body, "extra": extra}, kind)


def encode(value: Value) -> bytes:
    """The value's bytes."""
    return _ENCODER.encode(_plain(value))


def decode(kind: type[T], data: bytes) -> T:
    """The value in these bytes; raises ``msgspec.DecodeError`` when they hold none."""
    raw = msgspec.msgpack.decode(data)
    if not isinstance(raw, dict):
        raise msgspec.ValidationError(f"expected a map for {kind.__name__}, got {type(raw).__name__}")
    return _value(kind, raw)
