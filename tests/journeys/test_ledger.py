"""What a turn took, told to who asks for it and to nobody else."""

import json
import os
import signal
from typing import Any

import httpx
import pytest

from tests.journeys.conftest import Fresh
from tests.journeys.server import Server, wait_until

LEDGER = {"x-axon-ledger": "true"}
CHAT = {"model": "echo", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 5}
ASK = {"model": "echo", "input": "hello", "max_output_tokens": 5}


def frames_of(reply: httpx.Response) -> list[dict[str, Any]]:
    lines = [line[6:] for line in reply.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def check(ledger: dict[str, Any], usage: dict[str, int], *, attempts: int = 1) -> None:
    assert ledger["billed_tokens"] == usage["total_tokens"]
    assert ledger["prefilled_tokens"] + ledger["cached_tokens"] == ledger["queued_tokens"]
    assert ledger["emitted_tokens"] == usage.get("completion_tokens", usage.get("output_tokens"))
    assert ledger["attempts"] == attempts
    assert all(ledger[name] >= 0 for name in ledger)
    assert ledger["prefill_s"] > 0


def test_a_whole_answer_has_its_ledger_on_request(echo: Server) -> None:
    with echo.client() as http:
        for route, body in (("chat/completions", CHAT), ("completions", {"model": "echo", "prompt": "hello"})):
            asked = http.post(f"/v1/{route}", json=body, headers=LEDGER).json()
            check(asked["axon"]["ledger"], asked["usage"])
            assert "axon" not in http.post(f"/v1/{route}", json=body).json()


def test_a_stream_ends_with_its_ledger_on_request(echo: Server) -> None:
    body = {**CHAT, "stream": True, "stream_options": {"include_usage": True}}
    with echo.client() as http:
        asked = http.post("/v1/chat/completions", json=body, headers=LEDGER)
        *others, last = frames_of(asked)
        check(last["axon"]["ledger"], last["usage"])
        assert not any("ledger" in frame["axon"] for frame in others)
        assert "ledger" not in http.post("/v1/chat/completions", json=body).text
        again = http.get(f"/v1/streams/{asked.headers['x-axon-stream']}", headers=LEDGER)
        assert frames_of(again)[-1]["axon"]["ledger"] == last["axon"]["ledger"]


def test_a_response_has_its_ledger_on_request_and_keeps_it(echo: Server) -> None:
    with echo.client() as http:
        made = http.post("/v1/responses", json=ASK, headers=LEDGER).json()
        check(made["axon"]["ledger"], made["usage"])
        found = http.get(f"/v1/responses/{made['id']}", headers=LEDGER).json()
        assert found["axon"] == made["axon"]
        assert "ledger" not in http.get(f"/v1/responses/{made['id']}").json()["axon"]
        streamed = http.post("/v1/responses", json={**ASK, "stream": True}, headers=LEDGER)
        *others, last = frames_of(streamed)
        check(last["response"]["axon"]["ledger"], last["response"]["usage"])
        assert not any("ledger" in frame.get("response", {}).get("axon", {}) for frame in others)


@pytest.mark.everywhere
def test_a_turn_that_lost_its_engine_says_so_and_is_billed_once(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.02)
    [engine] = server.engine_pids()
    body = {"model": "echo", "prompt": "hello " * 20, "stream": True, "stream_options": {"include_usage": True}}
    body |= {"max_tokens": 150, "ignore_eos": True}  # a slow reader sees the beginning before the end is computed
    with server.client() as http, http.stream("POST", "/v1/completions", json=body, headers=LEDGER) as stream:
        lines = stream.iter_lines()
        next(lines)
        os.kill(engine, signal.SIGKILL)
        rest = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    ledger = rest[-1]["axon"]["ledger"]
    check(ledger, rest[-1]["usage"], attempts=2)
    assert ledger["replayed_tokens"] >= ledger["queued_tokens"]
    assert ledger["replay_s"] > 0


def test_a_cancelled_response_is_billed_what_it_said(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.02)
    with server.client() as http:
        made = http.post("/v1/responses", json={"model": "echo", "input": "hello", "background": True}).json()
        wait_until(lambda: server.metric("axon_requests_running") == 1, "it runs")
        http.post(f"/v1/responses/{made['id']}/cancel")
        found = http.get(f"/v1/responses/{made['id']}", headers=LEDGER).json()
    assert found["status"] == "cancelled"
    assert found["axon"]["ledger"]["billed_tokens"] == found["usage"]["total_tokens"]


@pytest.mark.everywhere
def test_ledgers_sum_to_their_tenants_bill(fresh: Fresh) -> None:
    server = fresh.start()
    with server.client() as http:
        bodies = [{**CHAT, "max_tokens": number, "n": 1 + number % 3} for number in range(1, 7)]
        told = [http.post("/v1/chat/completions", json=body, headers=LEDGER).json() for body in bodies]
        billed = sum(each["axon"]["ledger"]["billed_tokens"] for each in told)
        assert billed == sum(each["usage"]["total_tokens"] for each in told)

        def bill() -> int:
            return sum(int(day["total_tokens"]) for day in http.get("/v1/usage").json()["data"])

        wait_until(lambda: bill() == billed, "the bill is the sum of the ledgers")
