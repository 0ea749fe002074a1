"""Reads a response's events as a plain client does, byte for byte."""

import json
from collections.abc import Iterator
from typing import Any, Protocol

import httpx


class Server(Protocol):
    """Whatever has a client that knows its address and a key."""

    def client(self) -> httpx.Client: ...


class Event:
    """One event: its payload as it came, and what it says."""

    def __init__(self, name: str, data: str) -> None:
        self.data = data
        self.body: dict[str, Any] = json.loads(data)
        assert name == self.body["type"]
        self.number: int = self.body["sequence_number"]
        assert name != "error", f"the stream broke off: {data}"

    @property
    def last(self) -> bool:
        return self.body["type"] in ("response.completed", "response.incomplete", "response.failed")


def events(reply: httpx.Response) -> Iterator[Event]:
    """Every event up to the last one."""
    assert reply.status_code == 200, reply.read()
    name = ""
    for line in reply.iter_lines():
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            yield Event(name, line[6:])


def start(server: Server, body: dict[str, Any], num_events: int | None = None) -> tuple[str, list[Event]]:
    """Asks for a response and drops the connection after so many events."""
    with server.client() as http, http.stream("POST", "/v1/responses", json={**body, "stream": True}) as reply:
        return reply.headers["x-axon-stream"], _some(reply, num_events)


def resume(server: Server, response_id: str, after: int | None = None, num_events: int | None = None) -> list[Event]:
    """Goes on past event number ``after``, or from the beginning."""
    query = {"stream": "true", **({} if after is None else {"starting_after": str(after)})}
    with server.client() as http, http.stream("GET", f"/v1/responses/{response_id}", params=query) as reply:
        return _some(reply, num_events)


def _some(reply: httpx.Response, num_events: int | None) -> list[Event]:
    got: list[Event] = []
    for event in events(reply):
        got.append(event)
        if len(got) == num_events:
            break
    return got


def text_of(stream: list[Event]) -> str:
    return "".join(event.body.get("delta", "") for event in stream)
