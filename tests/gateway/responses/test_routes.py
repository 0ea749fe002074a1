"""What the routes of /v1/responses answer when a turn behind them takes its time."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.requests import Request

from axon.domain.reply import ResponseReply
from axon.domain.turn import opened
from axon.domain.wire import encode
from axon.gateway.responses import routes
from axon.gateway.turn import cancel
from tests.contracts.builders import make_job
from tests.sessions.world import TENANT, open_kept


async def test_cancelling_a_response_that_does_not_end_yet_shows_it_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cancel, "_STOP_S", 0.0)
    job = make_job("resp_1", tenant=TENANT, session="resp_1", reply=ResponseReply(model="echo"))
    async with open_kept(tmp_path) as kept:
        await kept.live.log.open(job.id, encode(job), reader_ttl_s=None)
        await kept.live.log.claim(job.id, "w1", over=0)
        await kept.journal.append([opened(job)])
        app = SimpleNamespace(state=SimpleNamespace(gateway=SimpleNamespace(sessions=kept.sessions, follower=None)))
        who = SimpleNamespace(tenant=TENANT)
        request = Request({"type": "http", "app": app, "headers": [], "axon.identity": who})
        answer = await routes.cancel(request, job.id)
        view = await kept.live.log.read(job.id, after=0)
    assert (answer.status_code, json.loads(bytes(answer.body))["status"]) == (200, "in_progress")
    assert view is not None
    assert view.cancelled
