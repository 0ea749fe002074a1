"""A tenant's life: made on the command line, changed over HTTP, suspended, its key rotated and revoked."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.journeys.conftest import Fresh, on_services
from tests.journeys.server import Server, running, wait_until
from tests.services.postgres import PostgresServer

CHAT = {"model": "echo", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 5}


def axon(server: Server, *arguments: str) -> Any:
    """A command beside a running server, and what it answers."""
    ran = server.axon(*arguments, "--json")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@contextmanager
def holding(server: Server, key: str) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=60) as client:
        yield client


def answers(client: httpx.Client, status: int, code: str | None = None) -> bool:
    """Whether a chat is answered so."""
    reply = client.post("/v1/chat/completions", json=CHAT)
    return reply.status_code == status and (code is None or reply.json()["error"]["code"] == code)


def test_a_tenants_life(fresh: Fresh) -> None:
    server = fresh.start()
    axon(server, "plans", "create", "pro", "--limit", "weight=2")
    axon(server, "tenants", "create", "acme", "--plan", "pro", "--limit", "requests_per_minute=9000")
    made = axon(server, "keys", "create", "--tenant", "acme", "--name", "app")
    root = axon(server, "keys", "create", "--tenant", "ops", "--scope", "admin")
    with holding(server, made["key"]) as acme, holding(server, root["key"]) as admin:
        assert answers(acme, 200)
        assert acme.get("/v1/admin/tenants").status_code == 403
        assert answers(admin, 403, "insufficient_permissions")

        shown = admin.get("/v1/admin/tenants/acme").json()
        assert (shown["terms"]["weight"], shown["terms"]["requests_per_minute"]) == (2.0, 9000.0)
        changed = admin.patch("/v1/admin/tenants/acme", json={"limits": {"requests_per_minute": 8000, "weight": 3}})
        assert (changed.json()["terms"]["weight"], changed.json()["terms"]["requests_per_minute"]) == (3.0, 8000.0)

        assert admin.post("/v1/admin/tenants/acme/suspend").status_code == 200
        wait_until(lambda: answers(acme, 403, "tenant_suspended"), "the tenant is suspended")
        assert admin.post("/v1/admin/tenants/acme/resume").status_code == 200
        wait_until(lambda: answers(acme, 200), "the tenant is back")

        rotated = admin.post(f"/v1/admin/keys/{made['id']}/rotate", json={"overlap_s": 3}).json()
        with holding(server, rotated["key"]) as successor:
            assert answers(successor, 200)
            assert answers(acme, 200)
            wait_until(lambda: answers(acme, 401), "the old key has had its time")
            assert answers(successor, 200)
            assert admin.post(f"/v1/admin/keys/{rotated['id']}/revoke").json()["revoked"]
            wait_until(lambda: answers(successor, 401), "the new key is revoked")

        assert admin.delete("/v1/admin/tenants/acme").json()["deleted"]

    def spent() -> int:
        (usage,) = axon(server, "usage", "--tenant", "acme")
        return int(usage["turns"])

    wait_until(lambda: spent() >= 5, "what was answered is counted")


def test_when_a_key_was_last_used_is_known_soon_after(fresh: Fresh) -> None:
    server = fresh.start()
    made = axon(server, "keys", "create", "--tenant", "acme")
    assert made["last_used_at"] is None
    with holding(server, made["key"]) as acme:
        assert acme.get("/v1/models").status_code == 200
    wait_until(lambda: axon(server, "keys", "list", "--tenant", "acme")[0]["last_used_at"], "its use is written down")


@pytest.mark.services
def test_a_key_is_revoked_while_the_store_is_away_and_the_store_hears_of_it_when_it_is_back(tmp_path: Path) -> None:
    postgres = PostgresServer(tmp_path / "postgres")
    postgres.start()
    try:
        settings = {**on_services(), "store": postgres.url, "engine_kind": "echo"}
        with running(tmp_path / "data", **settings) as server:
            keys = [axon(server, "keys", "create", "--tenant", "acme") for _ in range(3)]
            root = axon(server, "keys", "create", "--tenant", "ops", "--scope", "admin")
            with (
                holding(server, root["key"]) as admin,
                holding(server, keys[0]["key"]) as first,
                holding(server, keys[1]["key"]) as second,
                holding(server, keys[2]["key"]) as third,
            ):
                assert admin.get("/v1/admin/tenants").status_code == 200
                assert all(answers(client, 200) for client in (first, second, third))
                postgres.kill()
                assert admin.post(f"/v1/admin/keys/{keys[0]['id']}/revoke").json()["revoked"]
                wait_until(lambda: answers(first, 401), "the first is out without the store")
                said = server.axon("keys", "revoke", keys[1]["id"])
                said.check_returncode()
                assert "at every gateway" in said.stdout
                wait_until(lambda: answers(second, 401), "the second too, by the command line")
                assert answers(third, 200)
                postgres.start()

                def states() -> list[str]:
                    return [key["status"] for key in axon(server, "keys", "list", "--tenant", "acme")]

                wait_until(lambda: states() == ["revoked", "revoked", "valid"], "the store knows of both")
    finally:
        postgres.kill()


def test_what_is_stored_is_bounded_by_a_quota_and_deleting_makes_room(fresh: Fresh) -> None:
    server = fresh.start()
    axon(server, "plans", "create", "small", "--limit", "stored_bytes=200000", "--limit", "stored_objects=12")
    axon(server, "tenants", "create", "acme", "--plan", "small")
    key = axon(server, "keys", "create", "--tenant", "acme")["key"]
    root = axon(server, "keys", "create", "--tenant", "ops", "--scope", "admin")["key"]
    item = {"type": "message", "role": "user", "content": "x" * 60_000}
    asked = {"model": "echo", "input": "hello", "max_output_tokens": 5}
    with holding(server, key) as acme, holding(server, root) as admin:
        replies = [acme.post("/v1/conversations", json={"items": [item]}) for _ in range(5)]
        assert [reply.status_code for reply in replies] == [200, 200, 200, 429, 429]
        told = replies[-1].json()["error"]
        assert (told["code"], told["type"]) == ("storage_quota_exceeded", "insufficient_quota")
        assert "Delete conversations or responses" in told["message"]
        assert replies[-1].headers["x-should-retry"] == "false"
        assert "x-ratelimit-remaining-requests" in replies[0].headers

        stored = admin.get("/v1/admin/tenants/acme").json()["stored"]
        assert (stored["objects"], 180_000 < stored["bytes"] < 182_000) == (6, True)
        assert axon(server, "tenants", "show", "acme")["stored"] == stored

        for reply in replies[:3]:
            assert acme.delete(f"/v1/conversations/{reply.json()['id']}").status_code == 200
        empty = [acme.post("/v1/conversations", json={}).status_code for _ in range(11)]
        assert empty == [200] * 11
        kept = acme.post("/v1/responses", json=asked)
        assert kept.status_code == 200
        refused = acme.post("/v1/responses", json=asked)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "storage_quota_exceeded")
        assert acme.post("/v1/responses", json={**asked, "store": False}).status_code == 200
        assert answers(acme, 200)
        assert acme.delete(f"/v1/responses/{kept.json()['id']}").status_code == 200
        assert acme.post("/v1/responses", json=asked).status_code == 200
        assert admin.get("/v1/admin/tenants/acme").json()["stored"]["objects"] == 12


def test_a_quota_of_bytes_counts_what_is_stored_and_not_what_was_sent(fresh: Fresh) -> None:
    """An item's record is longer than its JSON by its id; the last one that fits must not go beyond the line."""
    server = fresh.start()
    axon(server, "tenants", "create", "acme", "--limit", "stored_bytes=2000")
    key = axon(server, "keys", "create", "--tenant", "acme")["key"]
    root = axon(server, "keys", "create", "--tenant", "ops", "--scope", "admin")["key"]
    item = {"role": "user", "content": "x"}
    with holding(server, key) as acme, holding(server, root) as admin:
        made = acme.post("/v1/conversations", json={"items": [item], "metadata": {"a": "b"}}).json()
        replies = [acme.post(f"/v1/conversations/{made['id']}/items", json={"items": [item]}) for _ in range(50)]
        assert {reply.status_code for reply in replies} == {200, 429}
        stored = admin.get("/v1/admin/tenants/acme").json()["stored"]["bytes"]
        assert 1800 < stored <= 2000


def test_making_conversations_counts_as_requests(fresh: Fresh) -> None:
    server = fresh.start()
    axon(server, "tenants", "create", "acme", "--limit", "requests_per_minute=3")
    key = axon(server, "keys", "create", "--tenant", "acme")["key"]
    with holding(server, key) as acme:
        made = acme.post("/v1/conversations", json={})
        path = f"/v1/conversations/{made.json()['id']}"
        item = {"type": "message", "role": "user", "content": "hello"}
        assert acme.post(f"{path}/items", json={"items": [item]}).status_code == 200
        assert acme.post(path, json={"metadata": {"a": "b"}}).status_code == 200
        refused = acme.post("/v1/conversations", json={})
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limit_exceeded")
        assert int(refused.headers["retry-after-ms"]) > 1000
        assert acme.get(path).status_code == 200
