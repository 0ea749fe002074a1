"""Amount stored for a tenant. Values only: the store measures it, admission compares it with the quota."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from axon.domain.content.item import Item

_encode = msgspec.msgpack.encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Conversations, the items that were added to them, and the retained turns whose text is still stored."""

    num_bytes: int = 0
    """Sum of the encoded sizes in bytes, without a database's own overhead."""
    num_objects: int = 0
    """A conversation counts as one, each added item as one, each retained turn as one."""

    @classmethod
    def of_items(cls, items: Sequence[Item]) -> "Stored":
        """Items as they are stored in a conversation: their ids and their encoding count, not the request's JSON."""
        return cls(num_bytes=len(_encode(list(items))) if items else 0, num_objects=len(items))

    @classmethod
    def of_metadata(cls, metadata: Mapping[str, str]) -> "Stored":
        """A conversation's metadata as they are stored; the conversation itself is another object."""
        return cls(num_bytes=len(_encode(dict(metadata))))

    def __add__(self, other: "Stored") -> "Stored":
        return Stored(
            num_bytes=self.num_bytes + other.num_bytes,
            num_objects=self.num_objects + other.num_objects,
        )

    def __sub__(self, other: "Stored") -> "Stored":
        return Stored(
            num_bytes=self.num_bytes - other.num_bytes,
            num_objects=self.num_objects - other.num_objects,
        )
