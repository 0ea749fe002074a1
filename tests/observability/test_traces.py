"""Traces of a real server, taken by a real OTLP receiver: one for each request, whole, without a word of the user's."""

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.journeys.server import Server, running, wait_until
from tests.observability.trace_check import REQUEST, STEPS, TURN, check_sums, named, whole_trace
from tests.services.otlp import Receiver, receiving

SECRET = "the canary sings at noon"
CHAT = {"model": "echo", "messages": [{"role": "user", "content": SECRET}], "max_tokens": 12}
LEDGER = {"x-axon-ledger": "true"}
AxonTrace = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture(scope="module")
def traced(receiver: Receiver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that exports every request."""
    settings = {
        "engine_kind": "echo",
        "traces_endpoint": receiver.url,
        "traces_sample_ratio": 1.0,
        "traces_gather_s": 0.1,
    }
    with running(tmp_path_factory.mktemp("traced") / "data", **settings) as server:
        yield server


@pytest.fixture(scope="module")
def axon_trace(traced: Server) -> AxonTrace:
    """``axon trace`` with an admin's key."""
    made = traced.axon("keys", "create", "--tenant", "ops", "--scope", "admin", "--json")
    key = json.loads(made.stdout)["key"]
    return lambda *arguments: traced.axon("trace", "--key", key, *arguments)


def test_a_chat_is_one_trace_from_the_gateway_to_its_last_byte(traced: Server, receiver: Receiver) -> None:
    with traced.client() as http:
        answer = http.post("/v1/chat/completions", json=CHAT, headers=LEDGER).json()
    spans = whole_trace(receiver, answer["id"], "chat echo", *TURN, *REQUEST)
    check_sums(spans, answer["axon"]["ledger"])
    [turn] = named(spans, "chat echo")
    assert not turn.parent_id
    assert turn.attributes["gen_ai.usage.output_tokens"] == answer["usage"]["completion_tokens"]
    assert not any(SECRET in str(span) or traced.key in str(span) for span in receiver.spans)


@pytest.mark.parametrize(
    ("path", "body", "key", "status", "code"),
    [
        ("/v1/chat/completions", CHAT, "wrong", 401, "invalid_api_key"),
        ("/v1/chat/completions", {**CHAT, "max_tokens": -1}, "", 400, "invalid_value"),
        ("/v1/chat/completions", {**CHAT, "model": "none"}, "", 404, "model_not_found"),
        ("/v1/nowhere", CHAT, "", 404, "unknown_url"),
    ],
)
def test_a_refused_request_is_a_span_with_its_status_and_code(
    traced: Server, receiver: Receiver, path: str, body: dict[str, object], key: str, status: int, code: str
) -> None:
    with traced.client() as http:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        answer = http.post(path, json=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    wanted = answer.headers["x-request-id"]

    def found() -> list[Any]:
        return [span for span in receiver.spans if span.attributes.get("axon.request.id") == wanted]

    wait_until(lambda: bool(found()), "its span has not come")
    [own] = found()
    assert (own.name, own.parent_id) == ("gateway.request", "")
    assert (own.attributes["http.response.status_code"], own.attributes["axon.error.code"]) == (status, code)


def test_a_trace_is_drawn_without_a_backend(traced: Server, axon_trace: AxonTrace) -> None:
    with traced.client() as http:
        reply = http.post("/v1/chat/completions", json=CHAT, headers=LEDGER)
        answer = reply.json()
    for name in (answer["id"], reply.headers["x-request-id"]):
        shown = axon_trace(name)
        assert shown.returncode == 0, shown.stderr
        assert answer["id"] in shown.stdout
        assert all(step in shown.stdout for step in ("admission", "job.queue_wait", "engine.prefill", "engine.decode"))
    found = json.loads(axon_trace(answer["id"], "--json").stdout)
    whole_s = sum(answer["axon"]["ledger"][name] for name in ("queue_s", "prefill_s", "decode_s", "replay_s"))
    steps = [span for span in found["spans"] if span["name"] in STEPS]
    assert sum(step["seconds"] for step in steps) == pytest.approx(whole_s, rel=0.05, abs=0.002)
    assert SECRET not in shown.stdout
    assert axon_trace("chatcmpl-nobody").returncode != 0


def test_the_slowest_turns_say_what_they_are_made_of(traced: Server, axon_trace: AxonTrace) -> None:
    with traced.client() as http:
        ids = [http.post("/v1/chat/completions", json=CHAT).json()["id"] for _ in range(3)]
    wait_until(lambda: ids[-1] in axon_trace("--slowest", "100").stdout, "the last turn is in the store")
    shown = axon_trace("--slowest", "100", "--since", "1h").stdout
    assert all(turn_id in shown for turn_id in ids)
    assert "engine.decode" in shown
    assert axon_trace().returncode != 0


def test_traces_are_for_admins(traced: Server) -> None:
    plain = traced.axon("keys", "create", "--json")
    key = json.loads(plain.stdout)["key"]
    refused = httpx.get(f"{traced.url}/v1/admin/traces", headers={"Authorization": f"Bearer {key}"}, timeout=60)
    assert refused.status_code == 403


def test_log_lines_of_a_request_have_its_trace(traced: Server) -> None:
    trace_id = "7" * 32
    with traced.client() as http:
        http.post("/v1/chat/completions", json=CHAT, headers={"traceparent": f"00-{trace_id}-{'8' * 16}-01"})
    wait_until(lambda: trace_id in traced.log, "the request's line has its trace")
