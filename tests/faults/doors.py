"""The routes that a client asks at: what each wants to be sent, and how its answer is read. No I/O.

A door notes in one ``Told`` what a turn is told, over all its connections, and knows where to read on.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from pydantic_core import from_json

from axon.domain.content.tool_call import call_id
from tests.faults.history import Ask, Piece, Told
from tests.faults.transcript import call_head, calls_of

Event = Mapping[str, Any]
_OUTPUT_ENDS = ("response.completed", "response.incomplete", "response.failed")


class Door(Protocol):
    """One turn at one route."""

    def body(self, *, streams: bool) -> dict[str, Any]:
        """What is posted."""
        ...

    def resumed(self) -> tuple[str, dict[str, str]]:
        """Path and query of the rest of the stream."""
        ...

    def connected(self, *, anew: bool) -> None:
        """A connection was answered: with the stream from its start, if ``anew``."""
        ...

    def line(self, line: str) -> Event | None:
        """The stream's error, if this line of it is one; everything else is noted."""
        ...

    def whole(self, answer: Event) -> None:
        """Notes an answer that is one object."""
        ...


class Completions:
    """Text completions: bare data lines, each with the seq of its last token."""

    def __init__(self, ask: Ask, told: Told, clock: Callable[[], float]) -> None:
        self._ask, self._told, self._clock = ask, told, clock
        self._seq = 0

    def body(self, *, streams: bool) -> dict[str, Any]:
        options = {"stream": True, "stream_options": {"include_usage": True}} if streams else {}
        return {**self._ask.body, **options}

    def resumed(self) -> tuple[str, dict[str, str]]:
        return f"/v1/streams/{self._told.stream_id}", {"after": str(self._seq)}

    def connected(self, *, anew: bool) -> None:
        self._seq = 0 if anew else self._seq

    def line(self, line: str) -> Event | None:
        if line == "data: [DONE]":
            self._told.num_done += 1
        elif line.startswith("data: "):
            event = json.loads(line[6:])
            if "error" in event:
                return dict(event["error"])
            self._heard(event)
        elif line:
            self._told.error = f"not a data line: {line}"
        return None

    def whole(self, answer: Event) -> None:
        """All choices, one after the other."""
        seq = 0
        for choice in answer["choices"]:
            text = self._text(choice["index"], choice)
            seq += len(text)
            self._told.pieces.append(Piece(self._clock(), seq, choice["index"], text))
            self._end(choice)
        self._told.usage.append(answer["usage"]["completion_tokens"])
        self._told.num_done += 1

    def _heard(self, event: Event) -> None:
        self._seq = event["axon"]["seq"]
        for choice in event.get("choices", ()):
            if text := self._text(choice["index"], choice):
                self._told.pieces.append(Piece(self._clock(), self._seq, choice["index"], text))
            if choice["finish_reason"]:
                self._end(choice)
        if event.get("usage"):
            self._told.usage.append(event["usage"]["completion_tokens"])

    def _end(self, choice: Event) -> None:
        self._told.finishes.append(choice["finish_reason"])
        self._told.ends[choice["index"]] = choice["finish_reason"]

    def _text(self, index: int, choice: Event) -> str:
        return str(choice["text"])


class Chat(Completions):
    """Chat: the same frames, with deltas of text and of tool calls."""

    def _text(self, index: int, choice: Event) -> str:
        message = choice["delta"] if "delta" in choice else choice["message"]
        calls = [self._call(index, place, call) for place, call in enumerate(message.get("tool_calls") or ())]
        return "".join([message.get("content") or "", *calls])

    def _call(self, choice: int, place: int, call: Event) -> str:
        index = call.get("index", place)
        if "id" not in call:
            return str(call["function"]["arguments"])
        if call["id"] != call_id(self._told.stream_id, choice, index):
            self._told.error = f"call {index} of choice {choice} has another turn's id: {call['id']}"
        return call_head(index, call["function"]["name"]) + str(call["function"]["arguments"])


class Messages:
    """Anthropic's messages: the last event of a token has its seq, so those before it count with it."""

    def __init__(self, ask: Ask, told: Told, clock: Callable[[], float]) -> None:
        self._ask, self._told, self._clock = ask, told, clock
        self._seq = self._num_blocks = self._num_calls = 0
        self._events: list[Event] = []
        """Events of a token whose last one has not come."""
        self._last: Event | None = None
        """The event with the answer's end, which is told once."""

    def body(self, *, streams: bool) -> dict[str, Any]:
        return {**self._ask.body, "stream": streams}

    def resumed(self) -> tuple[str, dict[str, str]]:
        return f"/v1/streams/{self._told.stream_id}", {"after": str(self._seq)}

    def connected(self, *, anew: bool) -> None:
        self._events.clear()
        if anew:
            self._seq = self._num_blocks = self._num_calls = 0
            self._last = None
        elif self._last is not None:
            self._end(self._last["delta"]["stop_reason"], self._last["usage"])

    def line(self, line: str) -> Event | None:
        if not line.startswith("data: "):
            return None
        event = json.loads(line[6:])
        if event["type"] == "error":
            return {"code": event["error"]["type"], **event["error"]}
        if event["type"] == "message_stop":
            self._told.num_done += 1
        elif event["type"] != "ping":
            self._events.append(event)
            if "axon" in event:
                self._token(event["axon"]["seq"])
        return None

    def whole(self, answer: Event) -> None:
        texts = [self._block(block) for block in answer["content"]]
        self._told.pieces.append(Piece(self._clock(), answer["usage"]["output_tokens"], 0, "".join(texts)))
        self._end(answer["stop_reason"], answer["usage"])
        self._told.num_done += 1

    def _token(self, seq: int) -> None:
        texts = []
        for event in self._events:
            match event["type"]:
                case "content_block_start":
                    self._started(event)
                    texts.append(self._block({**event["content_block"], "input": None}))
                case "content_block_delta":
                    delta = event["delta"]
                    texts.append(delta.get("text", "") + delta.get("partial_json", ""))
                case "message_delta":
                    self._last = event
                    self._end(event["delta"]["stop_reason"], event["usage"])
        self._events.clear()
        self._seq = seq
        if text := "".join(texts):
            self._told.pieces.append(Piece(self._clock(), seq, 0, text))

    def _started(self, event: Event) -> None:
        if event["index"] != self._num_blocks:
            self._told.error = f"block {event['index']} came where {self._num_blocks} was to come"
        self._num_blocks += 1

    def _block(self, block: Event) -> str:
        """A block, or with no ``input`` its beginning."""
        if block["type"] == "text":
            return str(block["text"])
        index, self._num_calls = self._num_calls, self._num_calls + 1
        if block["id"].removeprefix("toolu_") != call_id(self._told.stream_id, 0, index).removeprefix("call_"):
            self._told.error = f"call {index} has another turn's id: {block['id']}"
        return call_head(index, block["name"]) + self._spelled(index, block["input"])

    def _spelled(self, index: int, value: object) -> str:
        """A call's input comes parsed, as far as it came: if it is that of the undisturbed answer, it is spelled as
        there."""
        if value is None:
            return ""
        known = [call.arguments for call in calls_of("".join(self._ask.texts)) if call.number == index]
        return known[0] if known and from_json(known[0] or "{}", allow_partial=True) == value else json.dumps(value)

    def _end(self, reason: str, usage: Event) -> None:
        self._told.finishes.append(reason)
        self._told.ends[0] = reason
        self._told.usage.append(usage["output_tokens"])


class Responses:
    """Responses: events numbered from 0 on, without gaps."""

    def __init__(self, ask: Ask, told: Told, clock: Callable[[], float]) -> None:
        self._ask, self._told, self._clock = ask, told, clock
        self._number, self._num_calls = -1, 0

    def body(self, *, streams: bool) -> dict[str, Any]:
        return {**self._ask.body, "stream": streams}

    def resumed(self) -> tuple[str, dict[str, str]]:
        after = {} if self._number < 0 else {"starting_after": str(self._number)}
        return f"/v1/responses/{self._told.stream_id}", {"stream": "true", **after}

    def connected(self, *, anew: bool) -> None:
        if anew:
            self._number, self._num_calls = -1, 0

    def line(self, line: str) -> Event | None:
        if not line.startswith("data: "):
            return None
        event = json.loads(line[6:])
        if event["type"] == "error":
            return dict(event)
        self._counted(event)
        match event["type"]:
            case "response.output_item.added" if event["item"]["type"] == "function_call":
                self._say(self._call(event["item"]))
            case "response.output_text.delta" | "response.function_call_arguments.delta":
                self._say(event["delta"])
            case name if name in _OUTPUT_ENDS:
                if self._texts(event["response"]["output"]) != self._told.text():
                    self._told.error = f"the last event has another answer than the deltas: {line}"
                self._end(event["response"])
        return None

    def whole(self, answer: Event) -> None:
        self._say(self._texts(answer["output"]))
        self._end(answer)

    def _counted(self, event: Event) -> None:
        if event["sequence_number"] != self._number + 1 and event["type"] != "response.queued":
            self._told.error = f"event {event['sequence_number']} came where {self._number + 1} was to come"
        self._number = event["sequence_number"]

    def _say(self, text: str) -> None:
        if text:
            self._told.pieces.append(Piece(self._clock(), self._number, 0, text))

    def _texts(self, output: Sequence[Event]) -> str:
        self._num_calls = 0
        texts: list[str] = []
        for item in output:
            if item["type"] == "function_call":
                texts.append(self._call(item))
            else:
                texts += [part["text"] for part in item["content"]]
        return "".join(texts)

    def _call(self, item: Event) -> str:
        index, self._num_calls = self._num_calls, self._num_calls + 1
        if item["call_id"] != call_id(self._told.stream_id, 0, index):
            self._told.error = f"call {index} has another turn's id: {item['call_id']}"
        return call_head(index, item["name"]) + str(item["arguments"])

    def _end(self, response: Event) -> None:
        if response["status"] not in ("completed", "incomplete"):
            self._told.error = json.dumps(response.get("error") or response["status"])
        self._told.finishes.append(response["status"])
        self._told.ends[0] = response["status"]
        self._told.usage.append(response["usage"]["output_tokens"])
        self._told.num_done += 1


_DOORS: dict[str, type[Completions] | type[Messages] | type[Responses]] = {
    "/v1/completions": Completions,
    "/v1/chat/completions": Chat,
    "/v1/messages": Messages,
    "/v1/responses": Responses,
}


def door_of(ask: Ask, told: Told, clock: Callable[[], float]) -> Door:
    """The door of the ask's route, for one turn."""
    return _DOORS[ask.route](ask, told, clock)
