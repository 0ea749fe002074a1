"""Every route × everything a tenant can have × every wrong key: nobody gets into another's room, or hears of it."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from axon.domain.tenants.key import HOLDER, Scope
from axon.gateway.http import anthropic, ollama
from axon.gateway.http.middleware import ASKED_BY_PROXIES, OPEN_ROUTES
from axon.gateway.http.scopes import NEEDED
from tests import long
from tests.journeys.server import Server, wait_until
from tests.security.keyring import Keyring, basic, bearer, wrong_ways
from tests.security.rooms import Room, alike, asked, pairs, parameters_of, seen_by_owner
from tests.security.routes import BODIES, CLOSED, METHODS, OPEN, PATHS, WAYS, Way

_PAGES = ("/docs", "/openapi.json")
_NO_ISSUER = ("/ui/oidc/start", "/ui/oidc/callback")
"""Need no key, and are there only where an issuer is configured."""
_LOST = ("/v1", "/v1/", "/v1/nothing", "/v1/admin", "/admin", "/metrics", "/v1/models/", "/docs/", "/livez/")


def _filled(path: str, room: Room) -> str:
    return path.format(**{name: next(iter(room.named(name).values())) for name in parameters_of(path)})


def _unknown(path: str, room: Room) -> str:
    return path.format(**{name: alike(next(iter(room.named(name).values()))) for name in parameters_of(path)})


def cause(way: Way, reply: httpx.Response, code: str = "invalid_api_key") -> tuple[str, str]:
    """The type and the code of an error; Anthropic's errors have no code, and ``code`` stands for it. Ollama's have
    neither, and the status stands for the type."""
    error = reply.json()["error"]
    if ollama.has(way.path):
        assert isinstance(error, str)
        return {401: "authentication_error", 403: "permission_error"}[reply.status_code], code
    return error["type"], code if anthropic.has(way.path) else error["code"]


def takes_api_key(way: Way) -> bool:
    """Whether a key may be in an X-API-Key header."""
    return anthropic.has(way.path) or way.path == ASKED_BY_PROXIES


def test_every_route_is_in_the_table_of_scopes_and_every_body_is_a_routes() -> None:
    assert {way.name for way in WAYS} == set(NEEDED)
    assert {str(way) for way in WAYS} >= set(BODIES)
    assert OPEN == OPEN_ROUTES


@pytest.mark.table
@pytest.mark.parametrize("way", CLOSED, ids=str)
def test_no_wrong_key_opens_a_route(server: Server, keys: Keyring, room: Room, way: Way) -> None:
    ways = wrong_ways(keys, takes_api_key=takes_api_key(way)) | (
        {} if way.path in _PAGES else {"a password": basic(keys.mine)}
    )
    target = server.url + _filled(way.path, room)
    with httpx.Client(timeout=60) as http:
        for what, headers in [("nothing", ways.pop("nothing")), *long.in_turn(list(ways.items()), CLOSED.index(way))]:
            reply = http.request(way.method, target, headers=headers, json=way.body)
            assert reply.status_code == 401, (what, reply.text)
            assert cause(way, reply) == ("authentication_error", "invalid_api_key"), what
            assert reply.headers["www-authenticate"]
        suspended = http.request(way.method, target, headers=bearer(keys.suspended), json=way.body)
        assert suspended.status_code == 403
        assert cause(way, suspended, "tenant_suspended") == ("permission_error", "tenant_suspended")


@pytest.mark.parametrize("way", CLOSED, ids=str)
def test_a_key_opens_what_its_scopes_say_and_nothing_else(server: Server, keys: Keyring, room: Room, way: Way) -> None:
    holders = {
        keys.scopeless: frozenset[Scope](),
        keys.reader: frozenset({Scope.READ}),
        keys.asker: frozenset({Scope.INFERENCE}),
        keys.versioner: frozenset({Scope.VERSIONS}),
        keys.admin: frozenset({Scope.ADMIN}),
        keys.mine: HOLDER,
    }
    with httpx.Client(base_url=server.url, timeout=60) as http:
        for key, scopes in holders.items():
            may = bool(scopes & way.needed)
            target = (_unknown if may else _filled)(way.path, room)  # what it may do, it does to nothing of ours
            body = {} if may and "/admin" in way.path else way.body
            reply = http.request(way.method, target, headers=bearer(key), json=body)
            if may:
                assert reply.status_code in (200, 400, 404), (scopes, reply.text)
            else:
                assert reply.status_code == 403, (scopes, reply.text)
                code = "insufficient_permissions"
                assert cause(way, reply, code) == ("permission_error", code)


@pytest.mark.parametrize("path", [*PATHS, *_LOST])
def test_no_method_of_a_path_says_anything_without_a_key(server: Server, room: Room, path: str) -> None:
    if path in OPEN:
        method = "POST" if path == "/ui/sign-out" else "GET"
        reply = httpx.request(method, server.url + path.format(room="common", file="api.js"), timeout=60)
        assert reply.status_code == (404 if path in _NO_ISSUER else 200)
        return
    with httpx.Client(timeout=60) as http:
        for method in (*METHODS, "TRACE"):
            assert http.request(method, server.url + _filled(path, room)).status_code == 401, method


_OWNED = [path for path in PATHS if parameters_of(path) and path not in OPEN and "{model}" not in path]


@pytest.fixture(scope="module")
def untouched(server: Server, keys: Keyring, room: Room) -> Iterator[dict[str, Any]]:
    """What the owner finds in its room before anybody asks for it, and finds again when all have asked."""
    before = seen_by_owner(server, room, bearer(keys.mine))
    yield before
    assert seen_by_owner(server, room, bearer(keys.mine)) == before, "TEST_LONG=1 looks after each path"


@pytest.mark.table
@pytest.mark.parametrize("path", _OWNED)
def test_a_foreign_thing_is_answered_like_an_unknown_one_by_every_method(
    server: Server, keys: Keyring, room: Room, strangers_room: Room, untouched: dict[str, Any], path: str
) -> None:
    """A short run asks for every thing by every method that the path has, and by one of the others, with one query."""
    bodies = {way.method: way.body for way in WAYS if way.path == path}
    others = [method for method in METHODS if method not in bodies]
    num_asked = 0
    with httpx.Client(base_url=server.url, headers=bearer(keys.foreign), timeout=60) as http:
        for number, (what, theirs, nobodys, ids) in enumerate(pairs(path, room, strangers_room)):
            ahead = {"stream": "true", "starting_after": "0", "after": "0"}
            queries: list[dict[str, str]] = [{}, ahead, {"after": ids[-1][0]}]
            for turn, method in enumerate([*bodies, *long.in_turn(others, number, len(others))]):
                for query in long.in_turn(queries, number + turn, len(queries)):
                    request: dict[str, Any] = {"params": query}
                    if method in ("POST", "PUT", "PATCH"):
                        request["json"] = bodies.get(method) or {"metadata": {}}
                    found = asked(http, method, theirs, [each for each, _ in ids], **request)
                    request["params"] = {"after": ids[-1][1]} if query.get("after") == ids[-1][0] else query
                    unknown = asked(http, method, nobodys, [each for _, each in ids], **request)
                    assert found == unknown, (what, method, query)
                    assert found.status in (403, 404, 405) or (found.status == 400 and query), (what, method, found)
                    num_asked += 1
    assert num_asked
    if long.whole():
        assert seen_by_owner(server, room, bearer(keys.mine)) == untouched


@pytest.mark.parametrize("route", ["/v1/responses", "/v1/responses/input_tokens"])
@pytest.mark.parametrize(("field", "parameter"), [("previous_response_id", "response_id"), ("conversation", None)])
def test_a_foreign_thing_in_a_body_is_answered_like_an_unknown_one(
    server: Server, keys: Keyring, room: Room, route: str, field: str, parameter: str | None
) -> None:
    things = room.named(parameter or "conversation_id")
    with httpx.Client(base_url=server.url, headers=bearer(keys.foreign), timeout=60) as http:
        for what, each in things.items():
            for more in ({}, {"stream": True}, {"background": True}, {"truncation": "auto"}):
                body = {"model": "echo", "input": "hello", **more}
                found = asked(http, "POST", route, [each], json={**body, field: each})
                other = alike(each)
                unknown = asked(http, "POST", route, [other], json={**body, field: other})
                assert found == unknown, (what, more)
                assert found.status in (400, 404), (what, found)  # OpenAI's own statuses for the two fields
                assert "not_found" in found.body


def test_a_foreign_file_in_a_batch_is_answered_like_an_unknown_one(server: Server, keys: Keyring, room: Room) -> None:
    body = {"endpoint": "/v1/completions", "completion_window": "24h"}
    with httpx.Client(base_url=server.url, headers=bearer(keys.foreign), timeout=60) as http:
        for what, each in room.named("file_id").items():
            found = asked(http, "POST", "/v1/batches", [each], json={**body, "input_file_id": each})
            other = alike(each)
            unknown = asked(http, "POST", "/v1/batches", [other], json={**body, "input_file_id": other})
            assert found == unknown, what
            assert found.status == 404


@pytest.mark.parametrize(("field", "parameter"), [("previous_response_id", "response_id"), ("conversation", None)])
def test_a_foreign_thing_in_a_line_of_a_batch_is_answered_like_an_unknown_one(
    server: Server, keys: Keyring, room: Room, field: str, parameter: str | None
) -> None:
    things = room.named(parameter or "conversation_id")
    asks = [(what, each) for what, known in things.items() for each in (known, alike(known))]
    lines = [
        {
            "custom_id": str(number),
            "method": "POST",
            "url": "/v1/responses",
            "body": {"model": "echo", "input": "hello", "max_output_tokens": 2, field: each},
        }
        for number, (_, each) in enumerate(asks)
    ]
    with httpx.Client(base_url=server.url, headers=bearer(keys.foreign), timeout=60) as http:
        found = errors_of_batch(http, lines)
    assert len(found) == len(asks), "a line with somebody else's thing was answered"
    for number in range(0, len(asks), 2):
        what, theirs = asks[number]
        _, nobodys = asks[number + 1]
        bodies = [
            json.dumps(found[str(index)]["response"]["body"]).replace(each, "ID")
            for index, each in ((number, theirs), (number + 1, nobodys))
        ]
        assert bodies[0] == bodies[1], what
        assert "not_found" in bodies[0]


def errors_of_batch(http: httpx.Client, lines: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The lines of a batch's error file by their ids."""
    form = {"purpose": (None, "batch"), "file": ("a.jsonl", "\n".join(map(json.dumps, lines)))}
    file_id = http.post("/v1/files", files=form).raise_for_status().json()["id"]
    ask = {"input_file_id": file_id, "endpoint": "/v1/responses", "completion_window": "24h"}
    path = f"/v1/batches/{http.post('/v1/batches', json=ask).raise_for_status().json()['id']}"
    wait_until(lambda: http.get(path).json()["status"] in ("completed", "failed"), "the batch ends")
    batch = http.get(path).json()
    assert batch["status"] == "completed", batch
    read = http.get(f"/v1/files/{batch['error_file_id']}/content").text.splitlines()
    return {each["custom_id"]: each for each in map(json.loads, read)}


@pytest.mark.parametrize(("route", "parameter"), [("/v1/files", "file_id"), ("/v1/batches", "batch_id")])
def test_a_list_has_nothing_of_anothers(
    server: Server, keys: Keyring, room: Room, strangers_room: Room, route: str, parameter: str
) -> None:
    mine, theirs = set(strangers_room.named(parameter).values()), room.named(parameter)
    with httpx.Client(base_url=server.url, headers=bearer(keys.foreign), timeout=60) as http:
        listed = {each["id"] for each in http.get(route, params={"limit": 100}).json()["data"]}
        assert listed & mine
        assert not listed & set(theirs.values())
        for what, each in theirs.items():
            other = alike(each)
            found = asked(http, "GET", route, [each], params={"after": each, "limit": 1})
            unknown = asked(http, "GET", route, [other], params={"after": other, "limit": 1})
            assert found.status == unknown.status, what
            assert not any(foreign in found.body for foreign in theirs.values()), what


def test_anothers_idempotency_key_is_ones_own(server: Server, keys: Keyring) -> None:
    ask = {"model": "echo", "prompt": "hello", "max_tokens": 2}
    ids = []
    for key in (keys.mine, keys.foreign, keys.mine):
        headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": "the same"}
        reply = httpx.post(f"{server.url}/v1/completions", json=ask, headers=headers, timeout=60)
        assert reply.status_code == 200
        ids.append(reply.json()["id"])
    assert ids[0] == ids[2] != ids[1]


def test_anothers_idempotency_key_with_another_body_is_no_conflict(server: Server, keys: Keyring) -> None:
    for key, prompt in ((keys.mine, "one"), (keys.foreign, "two")):
        headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": "the same again"}
        ask = {"model": "echo", "prompt": prompt, "max_tokens": 2}
        assert httpx.post(f"{server.url}/v1/completions", json=ask, headers=headers, timeout=60).status_code == 200
