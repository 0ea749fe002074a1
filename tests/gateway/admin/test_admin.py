"""Administration over HTTP: scopes of its routes, and its log."""

import httpx
import structlog

from axon.domain.tenants.key import Scope
from axon.gateway.http.scopes import NEEDED
from tests.gateway.admin.office import Office, ok, refused


async def test_every_route_refuses_a_key_without_its_scope(office: Office) -> None:
    keys = {scope: await office.key("ops", scope) for scope in Scope}
    for route, needed in NEEDED.items():
        method, path = route.split(" ")
        for scope in set(Scope) - needed if needed else ():
            async with office.client(keys[scope]) as client:
                call = client.request(method, path.replace("{", "").replace("}", "").replace(":path", ""))
                if path.startswith("/v1/messages"):  # which answers in Anthropic's shape
                    reply = await call
                    assert (reply.status_code, reply.json()["error"]["type"]) == (403, "permission_error")
                elif path.startswith("/api/"):  # in Ollama's
                    reply = await call
                    assert (reply.status_code, "scope" in reply.json()["error"]) == (403, True)
                else:
                    await refused(call, 403, "insufficient_permissions")


async def test_a_change_is_logged_with_who_made_it_and_no_secret(admin: httpx.AsyncClient) -> None:
    with structlog.testing.capture_logs() as lines:
        made = await ok(admin.post("/v1/admin/keys", json={"tenant": "ops"}))
        await ok(admin.post("/v1/admin/tenants", json={"id": "acme", "limits": {"weight": 2}}))
        await ok(admin.get("/v1/admin/tenants"))
    changes = [line for line in lines if line["event"].startswith("admin.")]
    assert [line["event"] for line in changes] == ["admin.key_created", "admin.tenant_created"]
    assert all(line["by_tenant"] == "ops" and len(line["by_key"]) == 8 for line in changes)
    assert changes[1]["limits"] == {"weight": 2.0}
    assert made["key"][13:] not in str(lines)
