"""Sessions keep their version through restarts and losses; one that has to be moved keeps its history and is told."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fleet.fleet import ECHO, Fleet, shared_place
from tests.fleet.member import Member
from tests.fleet.versions import MODEL, Registry, rotated, sent
from tests.journeys.conftest import FEW_LANES, PATIENT
from tests.journeys.server import wait_until
from tests.long import share
from tests.services.postgres import PostgresServer
from tests.services.redis import RedisServer
from tests.services.require import require

pytestmark = [pytest.mark.services, pytest.mark.timeout(300)]

V1, V2 = "small@v1", "small@v2"
_AWAY_S = 20.0
"""Seconds without the store in the long run."""


@dataclass
class Pair:
    """A fleet with a Redis and a PostgreSQL of its own, and a deployment whose second version is rolled out whole."""

    fleet: Fleet
    registry: Registry
    redis: RedisServer
    postgres: PostgresServer
    workers: dict[str, Member]

    def on(self, version: str) -> None:
        """Returns when new sessions begin on a version at every gateway."""
        for gateway in self.fleet.gateways:
            with self.fleet.client(gateway.url) as http:
                wait_until(partial(begins_on, http, version), f"sessions begin on {version}")


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Two gateways, a worker of each version; new sessions begin on the second."""
    require("postgres", "initdb", "redis-server")
    with tempfile.TemporaryDirectory(prefix="axon-pinned-") as name, ExitStack() as stack:
        (folder := Path(name)).chmod(0o755)
        redis, postgres = RedisServer(folder / "redis"), PostgresServer(folder / "postgres")
        stack.callback(redis.kill)
        redis.start()
        stack.callback(postgres.kill)
        postgres.start()
        place = {**shared_place(), "live": redis.url, "store": postgres.create_database()}
        fleet = Fleet(folder, place, **{**ECHO, "dispatch_num_lanes": FEW_LANES, **PATIENT})
        stack.callback(fleet.stop)
        fleet.start(gateways=2, workers=1)
        registry = stack.enter_context(Registry(fleet))
        registry.add("v1")
        registry.add("v2")
        registry.rollout(version="v2", steps=[100], bake_s=0)
        workers = {V1: registry.worker("v1"), V2: registry.worker("v2")}
        wait_until(lambda: registry.rollout()["state"] == "running", "the new version is warm")
        made = Pair(fleet, registry, redis, postgres, workers)
        made.on(V2)
        yield made


def post(http: httpx.Client, path: str, session: str = "", **body: Any) -> httpx.Response:
    headers = {"x-axon-session": session} if session else {}
    return http.post(f"/v1/{path}", json={"model": MODEL, **body}, headers=headers)


def complete(http: httpx.Client, session: str = "") -> dict[str, Any]:
    return sent(post(http, "completions", session, prompt="abcd", max_tokens=8))


def begins_on(http: httpx.Client, version: str) -> bool:
    return bool(complete(http)["system_fingerprint"] == version)


def respond(http: httpx.Client, said: object, **where: Any) -> dict[str, Any]:
    return sent(post(http, "responses", input=said, max_output_tokens=400, **where))


def text_of(response: dict[str, Any]) -> str:
    return str(response["output"][0]["content"][0]["text"])


def test_sessions_keep_their_version_when_every_process_ends_and_redis_has_lost_them(pair: Pair) -> None:
    pair.registry.change(patience_s=60)  # a gateway that starts before the workers waits for them
    with pair.fleet.client() as http:
        first = {name: complete(http, name)["system_fingerprint"] for name in ("a", "b")}
        chain = respond(http, "one")
        pair.registry.rollout("rollback")
        pair.on(V1)
        first |= {name: complete(http, name)["system_fingerprint"] for name in ("c", "d")}
    assert first == {"a": V2, "b": V2, "c": V1, "d": V1}
    assert set(pair.fleet.stop().values()) == {0}
    pair.redis.flush()
    assert pair.fleet.edge is not None
    pair.fleet.edge.start()
    for member in pair.fleet.members:
        member.start(wait=False)
    for member in pair.fleet.members:
        member.wait_ready()
    with pair.fleet.client() as http:
        assert {name: complete(http, name)["system_fingerprint"] for name in first} == first
        second = respond(http, "two", previous_response_id=chain["id"])
        told = f"user: one\nassistant: {text_of(chain)}\nuser: two\nassistant:"
        assert (second["axon"]["version"], text_of(second)) == (V2, rotated(told, 1))
        assert complete(http, "e")["system_fingerprint"] == V1


@pytest.mark.long
def test_without_the_store_known_sessions_go_on_and_no_other_begins_anew(pair: Pair) -> None:
    pair.registry.change(patience_s=60)  # a worker that is not heard for seconds on busy cores moves no session
    with pair.fleet.client() as http:
        assert [complete(http, name)["system_fingerprint"] for name in ("forgotten", "known")] == [V2, V2]
        pair.registry.rollout("rollback")
        pair.redis.flush()
        pair.on(V1)
        chain = respond(http, "one")
        assert [complete(http, name)["system_fingerprint"] for name in ("known", "newer")] == [V2, V1]
        pair.postgres.kill()
        until = time.monotonic() + share(_AWAY_S)
        turns = 0
        while turns < 4 or time.monotonic() < until:
            answers = [complete(http, name) for name in ("known", "newer")]
            assert [each["system_fingerprint"] for each in answers] == [V2, V1], answers
            chain = respond(http, "on", previous_response_id=chain["id"]) if turns < 4 else chain
            assert chain["axon"]["version"] == V1
            turns += 1
        for name in ("forgotten", "new"):
            refused = post(http, "completions", name, prompt="abcd", max_tokens=8)
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "history_unavailable")
            assert int(refused.headers["retry-after"]) >= 1
        assert complete(http)["system_fingerprint"] == V1, "a turn that is its own session needs no history"
        pair.postgres.start()
        wait_until(lambda: post(http, "completions", "new", prompt="a").status_code == 200, "the store is back")
        names = ("forgotten", "known", "newer", "new")
        assert [complete(http, name)["system_fingerprint"] for name in names] == [V2, V2, V1, V1]


@pytest.mark.parametrize("reason", ["version_failed", "no_worker"])
def test_a_moved_conversation_keeps_its_history_and_is_answered_as_a_fresh_one(pair: Pair, reason: str) -> None:
    with pair.fleet.client() as http:
        talk = sent(http.post("/v1/conversations", json={}))["id"]
        talked = respond(http, "one", conversation=talk)
        chained = respond(http, "one")
        assert {complete(http, each.name)["system_fingerprint"] for each in pair.fleet.gateways} == {V2}
        told = [
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": text_of(talked)},
            {"role": "user", "content": "two"},
        ]
        assert text_of(talked) == text_of(chained) == rotated("user: one\nassistant:", 1)
        if reason == "version_failed":
            pair.registry.rollout("abort")
        else:
            pair.workers[V2].stop()  # while every new session begins on it
        for gateway in pair.fleet.gateways:
            wait_until(partial(moves, gateway, pair), "sessions are moved", 60)
        pair.on(V1)
        fresh = respond(http, told)
        moved = {"from": V2, "to": V1, "reason": reason}
        for where in ({"conversation": talk}, {"previous_response_id": chained["id"]}):
            answer = respond(http, "two", **where)
            assert answer["axon"]["moved"] == moved
            assert (text_of(answer), answer["axon"]["version"]) == (text_of(fresh), V1)
        again = respond(http, "three", conversation=talk)
        assert "moved" not in again["axon"]
        assert text_of(again).startswith("user: one\nassistant: ")


def moves(gateway: Member, pair: Pair) -> bool:
    """Whether a gateway moves sessions; it lets them wait for a worker before that."""
    with pair.fleet.client(gateway.url) as http:
        http.timeout = httpx.Timeout(2.0)
        try:
            return bool(complete(http, gateway.name)["system_fingerprint"] == V1)
        except httpx.TimeoutException:
            return False
