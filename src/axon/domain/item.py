"""One entry of a conversation: who said it, and what. Knows no wire format of anybody's."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A message, in the parts it came in."""

    type: str = "message"
    id: str
    role: str
    """``user``, ``assistant``, ``system`` or ``developer``."""
    texts: tuple[str, ...]
    status: str = "completed"
    """``incomplete`` for an answer that was cut off."""

    @property
    def text(self) -> str:
        return "".join(self.texts)
