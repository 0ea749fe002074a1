"""The JSON of conversation items: parses those that clients send, and encodes ours. Knows no route.

Messages of text, function calls and their results are supported; any other type of item or content is refused by name.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from axon.domain.content.item import Item
from axon.domain.ids import new_id
from axon.errors import InvalidInput, Unsupported
from axon.gateway.http.body import Many, Wire
from axon.gateway.http.paging import Look
from axon.gateway.openai.tools import check_arguments, full_name, missing, split_name
from axon.text.template import Message
from axon.text.tools.prompt import call_message

MAX_ITEMS = 1_000
"""A request may have at most this many items."""
_TEXT_PARTS = frozenset({"input_text", "output_text", "text"})


CallId = Annotated[str, Field(min_length=1, max_length=128)]


class Part(Wire):
    """A part of a message's content."""

    type: str
    text: str | None = None


class InputItem(Wire):
    """An item of a request: a message, a function's result, or an output item of an earlier response."""

    type: str | None = None
    role: Literal["user", "assistant", "system", "developer"] | None = None
    content: str | Many[Part] | None = None
    status: str | None = None
    call_id: CallId | None = None
    """The id of a call, which its result repeats."""
    name: Annotated[str, Field(max_length=64)] | None = None
    """The function that a call names."""
    namespace: Annotated[str, Field(max_length=64)] | None = None
    """The namespace of that function."""
    arguments: str | None = None
    """The arguments of a call, as JSON text."""
    output: str | Many[Part] | None = None
    """The text of a call's result."""


Input = str | Annotated[Many[InputItem], Field(max_length=MAX_ITEMS)]


def items_of(given: str | Sequence[InputItem], *, now: float, param: str = "input") -> tuple[Item, ...]:
    """Returns the items of an input with new ids. ``param`` is the name of the request's field that holds them."""
    if isinstance(given, str):
        return (Item(id=new_id("msg_", now), role="user", texts=(given,)),)
    return tuple(
        _item(each, now, f"{param}.{index}")
        for index, each in enumerate(given)
        if each.type != "reasoning"  # models are not given the reasoning of earlier responses
    )


def check_results(items: Iterable[Item], param: str = "input") -> None:
    """Raises ``InvalidInput`` unless every function call has exactly one result, somewhere behind it.

    A call that was cut off needs none: nobody can run it.
    """
    waiting: dict[str, Item] = {}
    answered: set[str] = set()
    for item in items:
        if item.type == "function_call":
            waiting[item.call_id] = item
        elif item.type == "function_call_output":
            if waiting.pop(item.call_id, None) is not None:
                answered.add(item.call_id)
            elif item.call_id in answered:
                raise InvalidInput(f"Duplicate function call output with call_id {item.call_id}.", param=param)
            else:
                message = f"No tool call found for function call output with call_id {item.call_id}."
                raise InvalidInput(message, param=param)
    if unanswered := next((call for call in waiting.values() if call.status == "completed"), None):
        raise InvalidInput(f"No tool output found for function call {unanswered.call_id}.", param=param)


def messages_of(instructions: str | None, items: Sequence[Item]) -> list[Message]:
    """Returns the messages for the model's chat template, the same as for a chat of these messages: calls belong to the
    assistant's message before them."""
    messages: list[Message] = [{"role": "system", "content": instructions}] if instructions else []
    names: dict[str, str] = {}
    calls: list[Message] | None = None
    for item in items:
        if item.type == "function_call":
            names[item.call_id] = item.name
            if calls is None:
                calls = []
                said = messages.pop()["content"] if messages and messages[-1]["role"] == "assistant" else ""
                messages.append({"role": "assistant", "content": said, "tool_calls": calls})
            calls.append(call_message(item.call_id, item.name, item.text))
            continue
        calls = None
        if item.type == "function_call_output":
            known = {"tool_call_id": item.call_id, "name": names.get(item.call_id, "")}
            messages.append({"role": "tool", "content": item.text, **known})
        else:
            messages.append({"role": _ROLES.get(item.role, item.role), "content": item.text})
    return messages


def item_body(item: Item) -> dict[str, Any]:
    """Returns the JSON of an item."""
    if item.type == "function_call":
        return call_body(item)
    if item.type == "function_call_output":
        return {
            "id": item.id,
            "type": item.type,
            "status": item.status,
            "call_id": item.call_id,
            "output": item.text,
        }
    return {
        "id": item.id,
        "type": item.type,
        "status": item.status,
        "role": item.role,
        "content": [part_body(item.role, text) for text in item.texts],
    }


def call_body(item: Item) -> dict[str, Any]:
    """Returns the JSON of a function call."""
    namespace, name = split_name(item.name)
    return {
        "id": item.id,
        "type": item.type,
        "status": item.status,
        "call_id": item.call_id,
        **({"namespace": namespace} if namespace else {}),
        "name": name,
        "arguments": item.text,
    }


def part_body(role: str, text: str) -> dict[str, Any]:
    """Returns the JSON of a content part in a message of this role."""
    if role == "assistant":
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "input_text", "text": text}


ITEM: Look[Item] = Look(lambda item: item.id, item_body)
"""The form of items in a list."""
_ROLES = {"developer": "system"}
"""Roles that chat templates do not know, with those that replace them."""


def _item(given: InputItem, now: float, path: str) -> Item:
    """Returns a client's item under our id; ``path`` names it in errors, as in ``input.0``."""
    if given.type == "function_call":
        return _call(given, now, path)
    if given.type == "function_call_output":
        return _result(given, now, path)
    if given.type not in (None, "message"):
        raise Unsupported(f"Items of type '{given.type}' are not supported by this server yet.", param=path)
    if given.role is None:
        raise InvalidInput(f"'{path}.role' is missing.", param=f"{path}.role", code="missing_required_parameter")
    if given.content is None:
        raise InvalidInput(f"'{path}.content' must be text.", param=f"{path}.content", code="invalid_type")
    status = "incomplete" if given.status == "incomplete" else "completed"
    texts = _texts(given.content, f"{path}.content")
    return Item(id=new_id("msg_", now), role=given.role, texts=texts, status=status)


def _call(given: InputItem, now: float, path: str) -> Item:
    """Returns a function call, such as an agent sends back that keeps its history itself."""
    for name in ("call_id", "name", "arguments"):
        if getattr(given, name) is None:
            raise missing(f"{path}.{name}")
    status = "incomplete" if given.status == "incomplete" else "completed"
    if status == "completed":
        check_arguments(given.arguments or "", f"{path}.arguments")
    return Item(
        type="function_call",
        id=new_id("fc_", now),
        role="assistant",
        texts=(given.arguments or "",),
        status=status,
        call_id=given.call_id or "",
        name=full_name(given.namespace or "", given.name or ""),
    )


def _result(given: InputItem, now: float, path: str) -> Item:
    if given.call_id is None:
        raise missing(f"{path}.call_id")
    if given.output is None:
        raise missing(f"{path}.output")
    texts = _texts(given.output, f"{path}.output")
    return Item(type="function_call_output", id=new_id("fco_", now), role="tool", texts=texts, call_id=given.call_id)


def _texts(content: str | list[Part], path: str) -> tuple[str, ...]:
    """Returns the texts of a message's content; raises if a part is no text."""
    if isinstance(content, str):
        return (content,)
    for part in content:
        if part.type not in _TEXT_PARTS:
            raise Unsupported(f"Content of type '{part.type}' is not supported by this server yet.", param=path)
        if part.text is None:
            raise InvalidInput(f"A part of '{path}' has no text.", param=path, code="missing_required_parameter")
    return tuple(part.text or "" for part in content)
