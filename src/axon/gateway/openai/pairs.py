"""Pairs the tool calls of a chat with their results, by the rules of OpenAI's API. No I/O; knows no prompt.

The messages of the role `tool` that directly follow an assistant's message have one result of each of its calls.
"""

from collections.abc import Sequence

from axon.errors import InvalidInput

_MAX_CHARS = 64
_MAX_IDS = 16
"""An error repeats at most this many ids, and this many characters of each."""


class Pairs:
    """The calls of the last assistant's message that was read, and which messages have their results."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        """The function of each call, by the call's id."""
        self._answered: dict[str, int] = {}
        """The index of the message with a call's result, by the call's id."""
        self._index = 0
        """The index of the assistant's message."""

    def called(self, names: dict[str, str], index: int) -> None:
        """Takes in the calls of the assistant's message of this index: the function of each, by the call's id."""
        self._names, self._answered, self._index = names, {}, index

    def result(self, call_id: str, index: int) -> str:
        """Returns the function whose result the message of this index is; raises ``InvalidInput`` unless its call is in
        the assistant's message before it, and has no result yet."""
        path = f"messages.{index}.tool_call_id"
        if call_id not in self._names:
            raise InvalidInput(
                "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'.", param=path
            )
        if call_id in self._answered:
            raise InvalidInput(
                f"Duplicate value for 'tool_call_id' of '{shown_ids([call_id])}', in "
                f"messages[{self._answered[call_id]}] and messages[{index}].",
                param=path,
            )
        self._answered[call_id] = index
        return self._names[call_id]

    def end(self) -> None:
        """The results end, with another message or with the chat; raises ``InvalidInput`` if a call has none."""
        if missing := [call_id for call_id in self._names if call_id not in self._answered]:
            raise InvalidInput(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {shown_ids(missing)}",
                param=f"messages.{self._index}.tool_calls",
            )
        self._names = {}


def shown_ids(ids: Sequence[str]) -> str:
    """Returns the ids for an error: the first of them, if they are many."""
    return ", ".join([each[:_MAX_CHARS] for each in ids[:_MAX_IDS]] + ["…"] * (len(ids) > _MAX_IDS))
