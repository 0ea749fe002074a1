"""One of everything that a fleet does, so that every panel of every dashboard has something to show."""

import json
import os
import signal
from contextlib import suppress

import httpx
from openai import OpenAI

from axon.engine.echo import POISON
from tests.fleet.versions import MODEL, register_echo, sent
from tests.journeys.server import wait_until
from tests.journeys.test_batches import chat_line, submit, wait_ended
from tests.monitoring.scene import PATIENCE_S, Scene

_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_LAUNCHED = "launched"
ABSENT = "absent"
"""A deployment without a worker, for which another one answers."""


def everything(scene: Scene) -> None:
    """Returns when all of it has happened; Prometheus may not have scraped it yet."""
    register_launched(scene)
    register_versions(scene)
    roll_out(scene)
    with scene.fleet.client(scene.fleet.gateways[0].url) as http:
        for act in (talk, resume_and_cancel, use_grammars, refuse, fall_back):
            act(scene, http)
        http.post("/v1/completions", json={"model": "echo", "prompt": list(POISON)})
    fail_over(scene)
    lose_redis(scene)
    run_batch(scene)
    wait_until(lambda: _launched_answers(scene), "control's own worker answers", PATIENCE_S)
    scene.scrape_all()


def register_launched(scene: Scene) -> None:
    """A deployment whose worker control starts; a turn waits for it."""
    register_echo(scene.fleet, _LAUNCHED, min_replicas=1, max_replicas=2)
    with scene.fleet.client(scene.fleet.gateways[0].url) as http, suppress(httpx.HTTPError):
        http.post("/v1/responses", json={"model": _LAUNCHED, "input": "Are you there?", "background": True})


def register_versions(scene: Scene) -> None:
    """A model with two versions that have workers, and one that has none."""
    scene.registry.add("v1")
    scene.registry.worker("v1")
    scene.registry.add("v2")
    scene.registry.add("v3")


def roll_out(scene: Scene) -> None:
    """A rollout that is taken back, and one that is half way."""
    scene.registry.rollout(version="v2", steps=[50], bake_s=0)
    scene.registry.rollout("abort")
    scene.registry.rollout(version="v2", steps=[50, 100], bake_s=3600)
    scene.registry.worker("v2")
    wait_until(lambda: scene.registry.rollout()["state"] == "running", "the rollout runs", PATIENCE_S)


def talk(scene: Scene, http: httpx.Client) -> None:
    """A session that asks for two versions, and a chain of two responses."""
    with mixing(scene) as mixer:
        ask_versions(mixer)
    first = sent(http.post("/v1/responses", json={"model": "echo", "input": "Hello."}))
    sent(http.post("/v1/responses", json={"model": "echo", "input": "Again.", "previous_response_id": first["id"]}))


def mixing(scene: Scene) -> httpx.Client:
    """A client whose key may ask for versions."""
    body = {"tenant": "mixer", "scopes": ["inference", "versions"]}
    scene.registry.http.post("/v1/admin/tenants", json={"id": "mixer"})  # which may be there already
    key = sent(scene.registry.http.post("/v1/admin/keys", json=body))["key"]
    headers = {"Authorization": f"Bearer {key}", "x-axon-session": "mixed"}
    return httpx.Client(base_url=scene.fleet.gateways[0].url, headers=headers, timeout=60)


def ask_versions(mixer: httpx.Client) -> None:
    """One session, two versions: the second one is refused."""
    for version in ("v1", "v2"):
        body = {"model": f"{MODEL}@{version}", "prompt": "abc", "max_tokens": 2}
        mixer.post("/v1/completions", json=body)


def resume_and_cancel(scene: Scene, http: httpx.Client) -> None:
    body = {"model": "echo", "prompt": "x" * 400, "max_tokens": 400, "stream": True}
    with http.stream("POST", "/v1/completions", json=body) as answer:
        id = answer.headers["x-axon-stream"] if "x-axon-stream" in answer.headers else _id_in(next(answer.iter_lines()))
        with http.stream("GET", f"/v1/streams/{id}", params={"after": 1}) as again:
            next(again.iter_lines())
        http.post(f"/v1/completions/{id}/cancel")


def use_grammars(scene: Scene, http: httpx.Client) -> None:
    """One is compiled, known the second time, and one is refused."""
    for schema in (_SCHEMA, _SCHEMA, {"type": "no such type"}):
        form = {"type": "json_schema", "json_schema": {"name": "city", "schema": schema}}
        body = {"model": "echo", "messages": [{"role": "user", "content": "Where?"}], "max_tokens": 40}
        http.post("/v1/chat/completions", json={**body, "response_format": form})


def refuse(scene: Scene, http: httpx.Client) -> None:
    """A tenant that asks more often than it may."""
    sent(scene.registry.http.post("/v1/admin/tenants", json={"id": "eager", "limits": {"requests_per_minute": 1}}))
    key = sent(scene.registry.http.post("/v1/admin/keys", json={"tenant": "eager"}))["key"]
    for _ in range(3):
        body = {"model": "echo", "prompt": "abc", "max_tokens": 2}
        http.post("/v1/completions", json=body, headers={"Authorization": f"Bearer {key}"})


def fall_back(scene: Scene, http: httpx.Client) -> None:
    """A deployment without a worker, for which another one answers."""
    body = {"id": ABSENT, "model": MODEL, "version": "v1", "num_lanes": 4, "patience_s": 0, "fallbacks": [MODEL]}
    sent(scene.registry.http.post("/v1/admin/deployments", json=body))

    def answered() -> bool:
        return http.post("/v1/completions", json={"model": ABSENT, "prompt": "abc", "max_tokens": 2}).is_success

    wait_until(answered, "the fallback answers", PATIENCE_S)


def fail_over(scene: Scene) -> None:
    """An engine dies under a stream."""
    worker = scene.echo_workers[0]
    before = _failovers(scene)
    scene.load.width, scene.load.repeats = 8, 20

    def failed_over() -> bool:
        worker.wait_ready()
        wait_until(lambda: worker.metric("axon_requests_running") > 0, "it has work again", PATIENCE_S)
        for pid in worker.engine_pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return _failovers(scene) > before

    wait_until(failed_over, "an engine's death was noticed by a stream", PATIENCE_S)
    scene.load.width, scene.load.repeats = 2, 1


def _failovers(scene: Scene) -> float:
    return sum(each.metric("axon_failovers_total") for each in scene.echo_workers)


def lose_redis(scene: Scene) -> None:
    """It is away until a process has noticed."""
    gateway = scene.fleet.gateways[0]
    scene.live.kill()
    try:
        wait_until(lambda: gateway.metric("axon_dependency_errors_total") > 0, "a call has failed", PATIENCE_S)
    finally:
        scene.live.start()


def run_batch(scene: Scene) -> None:
    with OpenAI(base_url=f"{scene.fleet.gateways[0].url}/v1", api_key=scene.fleet.key, max_retries=8) as client:
        wait_ended(client, submit(client, [chat_line(number) for number in range(6)]), PATIENCE_S)


def _launched_answers(scene: Scene) -> bool:
    with scene.fleet.client(scene.fleet.gateways[0].url) as http:
        return http.post("/v1/completions", json={"model": _LAUNCHED, "prompt": "abc", "max_tokens": 2}).is_success


def _id_in(line: str) -> str:
    return str(json.loads(line.removeprefix("data: "))["id"])
