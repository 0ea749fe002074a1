"""Decodes protobuf messages at a cost that their bytes bound. Pure functions; knows no message's meaning.

An empty message in a list takes two bytes on the wire and a hundred in memory, so a body of 4 MB could become 200 MB.
Its fields are counted in the raw bytes before anything is decoded.
"""

from functools import cache
from typing import Any, TypeVar

from google.protobuf.message import DecodeError, Message

from axon.errors import InvalidInput

MAX_FIELDS = 1 << 17
"""A message may hold this many fields, those of the messages in it included; a packed list of numbers counts as one."""
_MAX_SHIFT = 63

M = TypeVar("M", bound=Message)


def decoded(kind: type[M], data: bytes) -> M:
    """Returns the message in these bytes; raises ``InvalidInput`` if there is none, or too much in it."""
    count_fields(data, kind)
    try:
        return kind.FromString(data)
    except (DecodeError, UnicodeDecodeError):
        raise _not_one(kind.DESCRIPTOR.full_name) from None


def count_fields(data: bytes, kind: type[Message]) -> int:
    """Returns the number of fields in a message; raises ``InvalidInput`` past ``MAX_FIELDS``, or if it is malformed."""
    num_fields, name = 0, kind.DESCRIPTOR.full_name
    inside: list[tuple[int, int, Any]] = [(0, len(data), kind.DESCRIPTOR)]
    while inside:
        at, end, of = inside.pop()
        messages = _messages_in(of)
        while at < end:
            num_fields += 1
            if num_fields > MAX_FIELDS:
                raise InvalidInput(f"The message has too many fields: it may have {MAX_FIELDS}.")
            tag, at = _varint(data, at, end, name)
            match tag & 7:
                case 0:  # a number of any length
                    _, at = _varint(data, at, end, name)
                case 1:  # 64 bits
                    at += 8
                case 5:  # 32 bits
                    at += 4
                case 2:  # a text, bytes, a message or a packed list
                    size, at = _varint(data, at, end, name)
                    if (inner := messages.get(tag >> 3)) is not None and at + size <= end:
                        inside.append((at, at + size, inner))
                    at += size
                case _:  # groups, which proto3 does not have
                    raise _not_one(name)
            if at > end:
                raise _not_one(name)
    return num_fields


def _varint(data: bytes, at: int, end: int, name: str) -> tuple[int, int]:
    """Returns the number that begins at ``at``, and where it ends."""
    value = shift = 0
    while at < end and shift <= _MAX_SHIFT:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise _not_one(name)


@cache
def _messages_in(kind: Any) -> dict[int, Any]:
    """Returns the fields of a message that are messages themselves, by their numbers. The type of descriptors is not
    named because the library's stubs have two of them."""
    return {each.number: each.message_type for each in kind.fields if each.message_type is not None}


def _not_one(name: str) -> InvalidInput:
    return InvalidInput(f"The bytes are no message of the type {name}.", code="invalid_protobuf")
