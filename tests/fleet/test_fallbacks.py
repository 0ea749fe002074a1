"""Fallbacks in a fleet: another deployment answers, says so, and keeps the session."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from tests.fleet.fleet import Fleet
from tests.fleet.versions import MODEL, Registry, rotated, sent
from tests.journeys.server import wait_until

PROMPT = "abcdef"
LONG = "x" * 400


def asked(http: httpx.Client, session: str, **more: object) -> dict[str, Any]:
    body = {"model": MODEL, "prompt": PROMPT, "max_tokens": 8, **more}
    return sent(http.post("/v1/completions", json=body, headers={"x-axon-session": session} if session else {}))


def speaker(answer: dict[str, Any]) -> tuple[str, str, str | None]:
    """What it says, the version that says so, and the fallback that it names."""
    assert answer["model"] == MODEL
    text = answer["choices"][0]["text"]
    return text, answer["system_fingerprint"], answer.get("axon", {}).get("fallback")


OWN = (PROMPT, "small@v1", None)
SPARE = (rotated(PROMPT, 1), "small@v2", "spare")


@pytest.mark.services
def test_a_full_or_lost_deployment_is_answered_for_and_its_session_stays_there(fresh: Callable[..., Fleet]) -> None:
    fleet = fresh(admission_backlog_total=2).start(gateways=1, workers=1)
    with Registry(fleet) as registry, fleet.client(fleet.gateways[0].url) as http:
        registry.add("v1", engine={"echo_step_s": "0.05"})
        registry.add("v2")
        spare = {"id": "spare", "model": MODEL, "version": "v2", "num_lanes": 4}
        sent(registry.http.post("/v1/admin/deployments", json=spare))
        worker = registry.worker("v1")
        fleet.add("worker", worker_deployment="spare", worker_version="v2", worker_announce_s=0.2)
        wait_until(lambda: http.get("/v1/models/spare").json().get("state") == "ready", "the spare one is there")
        assert speaker(asked(http, "calm")) == OWN
        long = {"model": MODEL, "prompt": LONG, "max_tokens": len(LONG)}

        def is_full() -> bool:
            return http.post("/v1/completions", json={**long, "max_tokens": 1}).status_code == 503

        with ExitStack() as stack:
            streams = [http.stream("POST", "/v1/completions", json={**long, "stream": True}) for _ in range(2)]
            heads = [next(stack.enter_context(each).iter_lines()) for each in streams]
            assert is_full(), "without fallbacks it is refused"
            registry.change(fallbacks=["spare"])
            wait_until(lambda: not is_full(), "the gateway has heard of the fallback")
            assert speaker(asked(http, "busy")) == SPARE
            moved = asked(http, "calm")
            assert speaker(moved) == SPARE
            assert moved["axon"]["moved"] == {"from": "small@v1", "to": "small@v2", "reason": "fallback"}
            for head in heads:
                running = json.loads(head.removeprefix("data: "))["id"]
                sent(http.post(f"/v1/completions/{running}/cancel"))
        wait_until(lambda: speaker(asked(http, "")) == OWN, "it is free again")
        assert speaker(asked(http, "busy")) == speaker(asked(http, "calm")) == SPARE, "sessions stay"
        assert "moved" not in asked(http, "calm")["axon"]

        registry.change(patience_s=0)
        worker.kill()
        wait_until(lambda: http.get(f"/v1/models/{MODEL}").json()["state"] == "loading", "it has no worker", 60)
        assert speaker(asked(http, "lost")) == SPARE
        body = {"model": MODEL, "prompt": PROMPT, "max_tokens": 8, "stream": True}
        frames = http.post("/v1/completions", json=body).text.split("\n\n")
        first, last = (json.loads(frame.removeprefix("data: ")) for frame in (frames[0], frames[-3]))
        assert first["axon"]["fallback"] == "spare"
        assert (last["axon"]["fallback"], last["axon"]["end"]) == ("spare", True)
        response = sent(http.post("/v1/responses", json={"model": MODEL, "input": "hello"}))
        assert (response["model"], response["axon"]["fallback"]) == (MODEL, "spare")
        again = sent(http.get(f"/v1/responses/{response['id']}"))
        assert again["axon"]["fallback"] == "spare"
        assert fleet.gateways[0].metric('axon_fallbacks_total\\{from="small",to="spare"\\}') >= 7
