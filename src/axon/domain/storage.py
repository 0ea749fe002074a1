"""How much is stored for a tenant. Pure values: the store measures it, admission compares it with the quota."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Conversations, the items that were added to them, and the retained turns whose words are still kept."""

    num_bytes: int = 0
    """Their encoded sizes; what a database adds to a row for itself is not counted."""
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
