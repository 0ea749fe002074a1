"""One item of a conversation: a message, a tool call or its result. Knows no API's wire format."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A message, a tool call or its result; ``texts`` are its content parts, the call's arguments or the result."""

    type: str = "message"
    """``message``, ``function_call`` or ``function_call_output``."""
    id: str
    role: str
    """``user``, ``assistant``, ``system`` or ``developer``; ``assistant`` for a call and ``tool`` for a result."""
    texts: tuple[str, ...]
    status: str = "completed"
    """``incomplete`` for an answer that was cut off."""
    call_id: str = ""
    """The id by which a result names its call."""
    name: str = ""
    """The called function."""

    @property
    def text(self) -> str:
        return "".join(self.texts)
