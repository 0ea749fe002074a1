"""The admin API of live streams: those that this gateway writes, of all tenants or of one, and no text."""

import httpx

from axon.gateway.turn.reader import Reader
from tests.contracts.builders import make_job
from tests.gateway.admin.office import Office, ok, refused

URL = "/v1/admin/streams"


async def test_streams_are_listed_with_whose_they_are(office: Office, admin: httpx.AsyncClient) -> None:
    now = office.clock.now()
    office.gateway.follower.readers = (
        Reader(make_job("chatcmpl-2", tenant="acme", created=now - 1.0), "key-2"),
        Reader(make_job("chatcmpl-1", tenant="beta", created=now - 3.5), "key-1"),
        Reader(),
    )
    shown = await ok(admin.get(URL))
    assert (shown["process"], shown["num_streams"], shown["has_more"]) == ("gateway-1", 2, False)
    first, second = shown["data"]
    assert (first["id"], first["tenant"], first["key"], first["age_s"]) == ("chatcmpl-1", "beta", "key-1", 3.5)
    assert (second["id"], second["model"]) == ("chatcmpl-2", make_job().deployment)
    assert "prompt" not in str(shown)
    of_acme = await ok(admin.get(URL, params={"tenant": "acme"}))
    assert [each["id"] for each in of_acme["data"]] == ["chatcmpl-2"]
    of_key = await ok(admin.get(URL, params={"key": "key-1"}))
    assert [each["id"] for each in of_key["data"]] == ["chatcmpl-1"]


async def test_streams_need_the_scope_admin(office: Office) -> None:
    async with office.client(await office.key("ops")) as holder:
        await refused(holder.get(URL), 403, "insufficient_permissions")
