"""Pairs the tool calls of a conversation with their results, by the rules of Anthropic's API. No I/O; knows no prompt.

Each `tool_use` of an assistant's turn has one `tool_result` in the user's turn after it, before any text of that turn.
Messages of one role in a row are one turn, and a message of the role `system` is a part of none.
"""

from axon.errors import InvalidInput
from axon.gateway.openai.pairs import shown_ids


class Pairs:
    """The calls of a conversation as far as it was read, and those among them that have no result yet."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        """The tool of each call, by the call's id."""
        self._waiting: dict[str, int] = {}
        """The calls of the assistant's last turn that have no result: the index of each one's message, by its id."""
        self._answered: set[str] = set()
        """The calls that the user's turn has answered so far."""
        self._role = ""

    def enter(self, role: str) -> None:
        """A message of this role begins; raises ``InvalidInput`` if it ends a turn that left calls without a result."""
        if role in ("system", self._role):
            return
        self._role = role
        if role == "assistant":
            self.end()
            self._answered.clear()

    def call(self, call_id: str, name: str, index: int, path: str) -> None:
        """Adds a call in the message of this index; raises ``InvalidInput`` if there is one with this id."""
        if call_id in self._names:
            raise InvalidInput(f"{path}.id: `tool_use` ids must be unique", param=f"{path}.id")
        self._names[call_id] = name
        self._waiting[call_id] = index

    def result(self, call_id: str, path: str) -> str:
        """Returns the tool whose result this is; raises ``InvalidInput`` unless its call is in the turn before, and has
        no result yet."""
        if call_id in self._answered:
            raise InvalidInput(
                f"{path}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: "
                f"{shown_ids([call_id])}",
                param=path,
            )
        if self._waiting.pop(call_id, None) is None:
            raise InvalidInput(
                f"{path}: unexpected `tool_use_id` found in `tool_result` blocks: {shown_ids([call_id])}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous message.",
                param=path,
            )
        self._answered.add(call_id)
        return self._names[call_id]

    def text(self, role: str) -> None:
        """Text of this role comes; raises ``InvalidInput`` if the user writes before all results are given."""
        if role == "user":
            self.end()

    def end(self) -> None:
        """The results of a turn, or the conversation, end; raises ``InvalidInput`` if a call has no result."""
        if not self._waiting:
            return
        index = next(iter(self._waiting.values()))
        ids = shown_ids([call_id for call_id, at in self._waiting.items() if at == index])
        raise InvalidInput(
            f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. Each "
            "`tool_use` block must have a corresponding `tool_result` block in the next message.",
            param=f"messages.{index}",
        )
