"""POST /ui/render: other requests are answered while a text is rendered, and after its client has left."""

import asyncio
from pathlib import Path

import pytest

from axon.domain.tenants.tenant import Tenant
from axon.gateway.pages.rendering import renderer as module
from tests.gateway.admin.office import Office
from tests.gateway.pages.rendering.test_renderer import BACKTRACKING, CODE, COLOURED, STALLING, is_busy
from tests.journeys.planted import python_path


@pytest.fixture(autouse=True)
def _planted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", python_path(tmp_path / "plants"))
    for name in ("_ANSWER_S", "_START_S", "_WAIT_S"):
        monkeypatch.setattr(module, name, 120.0)


async def test_requests_are_answered_and_other_tenants_code_is_coloured_while_a_text_is_rendered(
    office: Office,
) -> None:
    await office.store.tenants.add(Tenant(id="other"))
    async with office.client(await office.key("ops")) as hostile, office.client(await office.key("other")) as other:
        stalled = asyncio.create_task(hostile.post("/ui/render", json={"text": STALLING}))
        [pid] = await is_busy(office.renderer)
        assert (await other.get("/v1/usage")).status_code == 200
        reply = await other.post("/ui/render", json={"text": CODE})
        assert COLOURED in reply.json()["html"]
        assert reply.json()["plain"] is False
        assert not stalled.done()
        stalled.cancel()
        await asyncio.gather(stalled, return_exceptions=True)
        reply = await other.post("/ui/render", json={"text": CODE})
        assert COLOURED in reply.json()["html"]
        assert pid in office.renderer.pids  # to leave ends no process: a new one would be at everybody's cost


async def test_a_text_that_cannot_be_formatted_says_so(office: Office) -> None:
    async with office.client(await office.key("ops")) as http:
        plain = (await http.post("/ui/render", json={"text": "planted crash <b>"})).json()
        assert plain == {"html": '<p class="piece">planted crash &lt;b&gt;</p>\n', "plain": True}
        assert (await http.post("/ui/render", json={"text": BACKTRACKING})).status_code == 200
        assert (await http.post("/ui/render", json={"text": "a" * 200_001})).status_code == 413
        assert (await http.post("/ui/render", json={"text": 1})).status_code == 400
