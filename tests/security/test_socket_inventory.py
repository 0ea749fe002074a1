"""A WebSocket × everything a tenant can have × every wrong key: as over HTTP, nobody hears of another's things."""

import json
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.journeys.server import Server
from tests.security.keyring import Headers, Keyring, bearer, wrong_ways
from tests.security.raw import PATIENCE_S
from tests.security.rooms import Room, alike, seen_by_owner
from tests.security.test_socket import opened

WAYS = ("query", "retrieve", "cancel", "previous", "conversation")


def handshaken(server: Server, headers: Headers, query: str = "") -> tuple[int, dict[str, Any]]:
    """The status and the body of a handshake that is refused."""
    address = server.url.replace("http://", "ws://") + "/v1/responses" + query
    with pytest.raises(InvalidStatus) as refused:
        connect(address, additional_headers=headers, open_timeout=60)
    response = refused.value.response
    return response.status_code, json.loads(response.body or b"{}")


def test_no_wrong_key_opens_a_socket(server: Server, keys: Keyring, room: Room) -> None:
    known = next(iter(room.named("response_id").values()))
    for what, headers in wrong_ways(keys, takes_api_key=False).items():
        for query in ("", f"?response_id={known}"):
            status, body = handshaken(server, headers, query)
            assert (status, body["error"]["code"]) == (401, "invalid_api_key"), what
    for key, code in ((keys.suspended, "tenant_suspended"), (keys.scopeless, "insufficient_permissions")):
        status, body = handshaken(server, bearer(key))
        assert (status, body["error"]["code"]) == (403, code)


def said(server: Server, key: str, way: str, each: str) -> str:
    """The first event that is heard of a thing, without its id."""
    with opened(server, key, f"?response_id={each}" if way == "query" else "") as line:
        ask: dict[str, Any] = {"type": "response.create", "model": "echo", "input": "a", "max_output_tokens": 2}
        events = {
            "retrieve": {"type": "response.retrieve", "response_id": each},
            "cancel": {"type": "response.cancel", "response_id": each},
            "previous": {**ask, "previous_response_id": each},
            "conversation": {**ask, "conversation": each},
        }
        if way != "query":
            line.send(json.dumps(events[way]))
        event = json.loads(line.recv(timeout=PATIENCE_S))
    assert event["type"] == "error", (way, event)
    return json.dumps(event, sort_keys=True).replace(each, "ID")


@pytest.mark.parametrize("way", WAYS)
def test_a_foreign_thing_is_answered_like_an_unknown_one(server: Server, keys: Keyring, room: Room, way: str) -> None:
    before = seen_by_owner(server, room, bearer(keys.mine))
    things = room.named("conversation_id" if way == "conversation" else "response_id")
    for what, each in things.items():
        assert said(server, keys.foreign, way, each) == said(server, keys.foreign, way, alike(each)), what
    assert seen_by_owner(server, room, bearer(keys.mine)) == before
