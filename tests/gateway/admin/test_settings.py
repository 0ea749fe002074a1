"""The admin API of settings: what holds in the process that answers, where it comes from, and no secret."""

from pathlib import Path

import httpx

from axon.bootstrap.gateway.parts import settings_in_effect
from axon.settings import load
from tests.gateway.admin.office import Office, ok, refused

URL = "/v1/admin/settings"


async def test_every_setting_is_listed_with_its_source_and_without_secrets(
    office: Office, admin: httpx.AsyncClient, tmp_path: Path
) -> None:
    file = tmp_path / "axon.toml"
    file.write_text("[gateway]\nport = 9000\n")
    environ = {
        "AXON_PEPPER": "very-secret-pepper",
        "AXON_STORE": "postgresql://axon:very-secret-word@db/axon",
        "AXON_TRACES_HEADERS": "x-key=very-secret-header",
    }
    loaded = load({"gateway.host": "0.0.0.0", "data_dir": str(tmp_path)}, environ, file)
    office.settings = settings_in_effect(loaded.settings)
    reply = await admin.get(URL)
    assert "very-secret" not in reply.text
    by_id = {each["id"]: each for each in reply.json()["data"]}
    assert (by_id["gateway.port"]["value"], by_id["gateway.port"]["origin"]) == (9000, str(file))
    assert (by_id["gateway.host"]["value"], by_id["gateway.host"]["origin"]) == ("0.0.0.0", "flag")
    assert by_id["store"]["origin"] == "AXON_STORE"
    assert by_id["store"]["value"].startswith("postgresql://axon:")
    assert (by_id["live"]["value"], by_id["live"]["origin"]) == ("memory://", "default")
    assert by_id["gateway.port"]["variable"] == "AXON_GATEWAY_PORT"
    assert by_id["gateway.port"]["meaning"]
    assert by_id.keys() == loaded.shown().keys()


async def test_the_settings_are_those_of_the_process_that_is_named(admin: httpx.AsyncClient) -> None:
    assert (await ok(admin.get(URL)))["process"] == "gateway-1"


async def test_settings_need_the_scope_admin(office: Office) -> None:
    async with office.client(await office.key("ops")) as holder:
        await refused(holder.get(URL), 403, "insufficient_permissions")
