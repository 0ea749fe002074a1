"""A tenant's limits as its clients meet them."""

from typing import Any

import openai
import pytest

from tests.journeys.conftest import Fresh
from tests.journeys.server import Server
from tests.journeys.sse import pieces

ASK: dict[str, Any] = {"model": "echo", "prompt": "on and on ", "ignore_eos": True, "temperature": 0}


def client(server: Server) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key=server.key, max_retries=0)


def test_a_spent_budget_stops_a_stream_and_refuses_the_next_request_for_good(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.005, admission_tokens_per_day=200)
    body = {**ASK, "max_tokens": 4000, "stream": True}
    with server.client() as http, http.stream("POST", "/v1/completions", json=body) as reply:
        assert reply.status_code == 200
        last = list(pieces(reply.iter_lines()))[-1].event
    assert last["choices"][0]["finish_reason"] == "length"
    assert (last["axon"]["stopped"], last["axon"]["end"]) == ("budget", True)
    assert 150 < last["axon"]["seq"] < 1000
    with pytest.raises(openai.RateLimitError) as refused, client(server) as api:
        api.completions.create(model="echo", prompt="one more", max_tokens=1)
    assert refused.value.code == "insufficient_quota"
    assert refused.value.response.headers["x-should-retry"] == "false"
    assert "retry-after-ms" not in refused.value.response.headers
    hostile = {"model": "echo", "prompt": "x", "guided_json": {"type": "zork"}}
    with server.client() as http:
        assert http.post("/v1/completions", json=hostile).status_code == 429, "nothing is compiled for it"
    server.stop()
    server = fresh.start(admission_tokens_per_day=200)
    with pytest.raises(openai.RateLimitError) as again, client(server) as api:
        api.completions.create(model="echo", prompt="after a restart", max_tokens=1)
    assert again.value.code == "insufficient_quota", "what was used is in the store"


def test_a_stream_whose_bucket_has_run_dry_goes_on_and_others_are_told_when_to_come_back(fresh: Fresh) -> None:
    server = fresh.start(admission_tokens_per_minute=600)
    body = {**ASK, "max_tokens": 630, "stream": True}
    with server.client() as http, http.stream("POST", "/v1/completions", json=body) as reply:
        lines = pieces(reply.iter_lines())
        for piece in lines:
            if piece.seq >= 600:
                break
        with pytest.raises(openai.RateLimitError) as refused, client(server) as api:
            api.completions.create(model="echo", prompt="one more", max_tokens=100)
        headers = refused.value.response.headers
        assert refused.value.code == "rate_limit_exceeded"
        assert headers["x-ratelimit-limit-tokens"] == "600"
        assert int(headers["x-ratelimit-remaining-tokens"]) < 100
        assert int(headers["retry-after-ms"]) > 0
        last = list(lines)[-1]
    assert last.seq == 630
