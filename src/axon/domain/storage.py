"""Amount stored for a tenant. Values only: the store measures it, admission compares it with the quota."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Conversations, the items that were added to them, and the retained turns whose text is still stored."""

    num_bytes: int = 0
    """Sum of the encoded sizes in bytes, without a database's own overhead."""
    num_objects: int = 0
    """A conversation counts as one, each added item as one, each retained turn as one."""

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
