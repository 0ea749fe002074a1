"""The admin API of adapters: added from a source, listed, given new files, removed; each change in the trail."""

import httpx

from tests.gateway.admin.office import Office, ok, refused

URL = "/v1/admin/adapters"
SQL = {"model": "qwen3", "name": "sql", "source": "/adapters/sql"}


async def test_an_adapter_is_added_listed_and_removed(admin: httpx.AsyncClient) -> None:
    made = await ok(admin.post(URL, json=SQL))
    assert (made["id"], made["object"], made["model"], made["label"]) == ("qwen3:sql", "adapter", "qwen3", "sql")
    assert (made["tenant"], made["files"][0]["source"]) == ("", "/adapters/sql")
    await ok(admin.post(URL, json={**SQL, "model": "other", "name": "own", "tenant": "acme"}))
    assert [each["id"] for each in (await ok(admin.get(URL)))["data"]] == ["other:own", "qwen3:sql"]
    assert [each["id"] for each in (await ok(admin.get(URL, params={"model": "other"})))["data"]] == ["other:own"]
    assert await ok(admin.get(f"{URL}/qwen3:sql")) == made
    assert (await ok(admin.delete(f"{URL}/qwen3:sql")))["deleted"] is True
    await refused(admin.get(f"{URL}/qwen3:sql"), 404, "adapter_not_found")
    trail = (await ok(admin.get("/v1/admin/changes")))["data"]
    assert {each["kind"] for each in trail} == {"adapter"}
    assert [each["action"] for each in trail] == ["add", "add", "remove"]


async def test_an_adapter_that_is_there_gets_the_new_files(admin: httpx.AsyncClient) -> None:
    await ok(admin.post(URL, json=SQL))
    again = await ok(admin.post(URL, json={**SQL, "source": "/adapters/better"}))
    assert [each["source"] for each in again["files"]] == ["/adapters/better", "/adapters/sql"]
    await refused(admin.post(URL, json={**SQL, "tenant": "acme"}), 409, "adapter_exists")


async def test_a_source_without_an_adapter_and_an_old_revision_are_refused(admin: httpx.AsyncClient) -> None:
    reply = await admin.post(URL, json={**SQL, "source": "/nowhere"})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "source")
    made = await ok(admin.post(URL, json=SQL))
    old = {"If-Match": f'"{made["revision"] + 1}"'}
    await refused(admin.delete(f"{URL}/qwen3:sql", headers=old), 409, "revision_mismatch")


async def test_adapters_need_the_scope_admin(office: Office) -> None:
    async with office.client(await office.key("ops")) as holder:
        await refused(holder.get(URL), 403, "insufficient_permissions")
        await refused(holder.post(URL, json=SQL), 403, "insufficient_permissions")
