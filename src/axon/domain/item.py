"""One item of a conversation: a role and its texts. Knows no API's wire format."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A message; ``texts`` are its content parts."""

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
