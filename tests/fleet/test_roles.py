"""Each role by itself: what it needs, what it says while it lacks it, and how it leaves."""

import json
import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from axon.client import resumed
from tests.fleet.fleet import Fleet
from tests.fleet.member import Role
from tests.journeys.server import REPOSITORY, wait_until
from tests.journeys.sse import pieces, text_of
from tests.services import rabbitmq, warm

ROLES: tuple[Role, ...] = ("gateway", "worker", "control")
BODY = {"model": "echo", "prompt": "A fleet of one mind. " * 20, "max_tokens": 300, "ignore_eos": True}
AMQP, REDIS, POSTGRES = "amqp://127.0.0.1:1", "redis://127.0.0.1:1", "postgresql://127.0.0.1:1/axon"


def run(*arguments: str, folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AXON_")}
    own = {f"AXON_{name.upper()}": value for name, value in settings.items()}
    environment = {**clean, "PYTHONPATH": str(REPOSITORY / "src"), "AXON_DATA_DIR": str(folder), **own}
    return warm.run(arguments, environ=environment, folder=folder)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    ("options", "named"),
    [
        ((), "memory://"),
        (("--queue", AMQP, "--store", POSTGRES), "memory://"),
        (("--live", REDIS, "--store", POSTGRES), "memory://"),
        (("--queue", AMQP, "--live", REDIS), "SQLite"),
    ],
)
def test_a_role_refuses_what_no_other_process_could_reach(
    role: str, options: tuple[str, ...], named: str, tmp_path: Path
) -> None:
    ran = run(role, *options, folder=tmp_path)
    assert ran.returncode == 2, ran.stderr
    assert named in ran.stderr
    assert f"`axon {role}`" in ran.stderr
    assert "axon serve" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("role", ROLES)
def test_a_role_whose_services_are_away_says_so_and_ends(role: str, tmp_path: Path) -> None:
    pepper = "0123456789abcdef" * 2
    services = ("--queue", AMQP, "--live", REDIS, "--store", POSTGRES)
    ran = run(role, *services, folder=tmp_path, pepper=pepper, lifecycle_start_wait_s="0.3")
    assert ran.returncode == 1
    *waits, said = ran.stderr.splitlines()
    assert said.startswith("axon: ")
    assert all("process.waits" in line for line in waits)
    assert "Traceback" not in ran.stderr


@pytest.mark.services
def test_every_role_waits_at_its_start_for_a_service_that_comes_later(fresh: Callable[..., Fleet]) -> None:
    broker = rabbitmq.started_victim()
    fleet = fresh(queue=broker.url, lifecycle_start_wait_s=120, service_timeout_s=3.0)
    members = [fleet.make(role) for role in ROLES]
    broker.pause()
    try:
        for member in members:
            member.start(wait=False)
        for member in members:
            wait_until(lambda member=member: "process.waits" in member.log, "it says that it waits", 60)  # type: ignore[misc]
            assert member.alive
            assert member.probe("/readyz") == 503
    finally:
        broker.resume()
    for member in members:
        member.wait_ready()


@pytest.mark.services
def test_a_gateway_without_a_worker_says_so_and_becomes_ready_with_the_first(fresh: Callable[..., Fleet]) -> None:
    fleet = fresh()
    gateway = fleet.make("gateway").start(wait=False)
    wait_until(lambda: gateway.probe("/livez") == 200, "the gateway is up")
    wait_until((fleet.data_dir / "dev-key").exists, "its key is made")
    with fleet.client(gateway.url) as http:

        def says_what_is_missing() -> bool:
            try:
                return bool(http.get("/readyz").json().get("status") == "no_worker")
            except httpx.TransportError:
                return False  # its probes answer before it listens

        wait_until(says_what_is_missing, "it says what is missing")
        ready = http.get("/readyz")
        assert ready.status_code == 503
        assert "No worker of 'echo'" in ready.json()["message"]
        refused = http.post("/v1/completions", json=BODY)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "no_worker")
        assert refused.headers["retry-after-ms"]
        assert http.get("/v1/models").json()["data"] == []
        unknown = http.post("/v1/completions", json={**BODY, "model": "other"})
        assert unknown.status_code == 404
        fleet.add("control")
        fleet.add("worker")
        gateway.wait_ready()
        assert http.get("/readyz").status_code == 200
        assert http.post("/v1/completions", json=BODY).status_code == 200


@pytest.mark.services
def test_turns_wait_in_the_queue_while_all_workers_are_away(fresh: Callable[..., Fleet]) -> None:
    fleet = fresh().start(gateways=1, workers=1)
    [gateway], [worker] = fleet.gateways, fleet.workers
    worker.kill()
    wait_until(lambda: gateway.metric("axon_workers") == 0, "the gateway does not see the worker any more")
    with fleet.client(gateway.url) as http:
        assert http.get("/readyz").status_code == 200
        made = http.post("/v1/responses", json={"model": "echo", "input": "wait for it", "background": True})
        assert made.status_code == 200, made.text
        worker.start()
        wait_until(
            lambda: http.get(f"/v1/responses/{made.json()['id']}").json()["status"] in ("completed", "incomplete"),
            "the turn is answered by the worker that came back",
        )


@pytest.mark.services
def test_a_second_worker_of_the_same_name_ends_with_a_word(fresh: Callable[..., Fleet]) -> None:
    fleet = fresh(worker_announce_s=0.2).start(gateways=1, workers=1)
    second = fleet.make("worker", worker_name="worker-1").start(wait=False)
    assert second.wait() == 2
    assert "Another worker has the name worker-1" in second.log
    assert fleet.workers[0].probe("/readyz") == 200


@pytest.mark.services
def test_a_gateway_that_could_know_no_key_does_not_start(fresh: Callable[..., Fleet]) -> None:
    fleet = fresh().start(gateways=1, workers=1)
    stranger = fleet.make("gateway", data_dir=fleet.folder / "elsewhere").start(wait=False)
    assert stranger.wait() == 2
    assert "AXON_PEPPER" in stranger.log


@pytest.mark.services
def test_every_role_stops_cleanly_when_it_is_told(fresh: Callable[..., Fleet]) -> None:
    fleet = fresh().start(gateways=1, workers=1, controls=1)
    assert {name for name, code in fleet.stop().items() if code != 0} == set()


@pytest.mark.services
def test_a_worker_that_is_told_to_stop_while_it_starts_does_so(fresh: Callable[..., Fleet]) -> None:
    worker = fresh().make("worker").start(wait=False)
    wait_until(lambda: worker.probe("/livez") == 200, "it answers")
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0


@pytest.mark.services
def test_a_gateway_that_is_told_to_stop_lets_its_streams_end(fresh: Callable[..., Fleet]) -> None:
    fleet = fresh(engine_echo_step_s=0.01).start(workers=1)
    first, second = fleet.gateways
    with (
        fleet.client(first.url) as http,
        http.stream("POST", "/v1/completions", json={**BODY, "stream": True}) as reply,
    ):
        stream = pieces(reply.iter_lines())
        before = next(stream)
        first.send(signal.SIGTERM)
        wait_until(lambda: first.probe("/readyz") != 200, "it is not ready any more")
        with fleet.client() as edge:  # which meets the other one
            assert edge.post("/v1/completions", json={**BODY, "max_tokens": 5}).status_code == 200
        got = [before, *stream]
    assert got[-1].finish == "length"
    assert len(text_of(got)) == 300
    assert first.wait() == 0
    assert second.alive


@pytest.mark.services
def test_no_request_fails_behind_nginx_while_gateways_are_restarted(fresh: Callable[..., Fleet]) -> None:
    """The clients send nothing twice: each answer here is the only one that its client got."""
    fleet = fresh(engine_echo_step_s=0.001).start(workers=1)
    over, answers = threading.Event(), Counter[str]()

    def ask() -> None:
        with fleet.client() as http:
            while not over.wait(0.02):  # the gateways that start need the cores too
                reply = http.post("/v1/completions", json={**BODY, "max_tokens": 2})
                answers["200" if reply.status_code == 200 else f"{reply.status_code} {reply.text}"] += 1

    with ThreadPoolExecutor() as clients:
        asking = [clients.submit(ask) for _ in range(4)]
        try:
            codes = [gateway.restart() for _ in range(3) for gateway in fleet.gateways]
        finally:
            over.set()
        for each in asking:
            each.result()
    assert set(codes) == {0}
    assert set(answers) == {"200"}, answers


@pytest.mark.services
def test_a_stream_that_outlasts_its_gateway_is_picked_up_at_another(fresh: Callable[..., Fleet]) -> None:
    fleet = fresh(engine_echo_step_s=0.01, lifecycle_drain_s=0.2).start(workers=1)
    first, _ = fleet.gateways
    messages: Any = [{"role": "user", "content": "Pick it up where it broke. " * 20}]
    with openai.OpenAI(base_url=f"{first.url}/v1", api_key=fleet.key) as api:
        whole = api.chat.completions.create(model="echo", messages=messages, max_tokens=300).choices[0].message.content
        for kind in ("chat", "response"):
            if not first.alive:
                first.start()
            if kind == "chat":
                stream: Any = api.chat.completions.create(model="echo", messages=messages, max_tokens=300, stream=True)
            else:
                stream = api.responses.create(
                    model="echo", input=messages[0]["content"], max_output_tokens=300, stream=True
                )
            with openai.OpenAI(base_url=f"{fleet.url}/v1", api_key=fleet.key) as edge:
                events = resumed(edge, stream)
                got = [next(events) for _ in range(5)]
                first.send(signal.SIGTERM)
                got += list(events)
            assert first.wait() == 0
            said = [
                (event.choices[0].delta.content or "") if kind == "chat" else getattr(event, "delta", "")
                for event in got
            ]
            assert "".join(said) == whole


@pytest.mark.services
def test_a_gateway_at_its_end_says_in_a_stream_that_the_rest_is_elsewhere(fresh: Callable[..., Fleet]) -> None:
    fleet = fresh(engine_echo_step_s=0.02, lifecycle_drain_s=0.2).start(gateways=1, workers=1)
    [gateway] = fleet.gateways
    with (
        fleet.client(gateway.url) as http,
        http.stream("POST", "/v1/completions", json={**BODY, "stream": True}) as reply,
    ):
        lines = reply.iter_lines()
        next(lines)
        gateway.send(signal.SIGTERM)
        said = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    assert said[-1]["error"]["code"] == "draining"
    assert all("error" not in each for each in said[:-1])
    assert gateway.wait() == 0


@pytest.mark.services
def test_a_stream_of_a_gateway_that_is_killed_goes_on_at_another(fresh: Callable[..., Fleet]) -> None:
    fleet = fresh(engine_echo_step_s=0.01).start(workers=1)
    messages: Any = [{"role": "user", "content": "Pick it up where it broke. " * 20}]
    with openai.OpenAI(base_url=f"{fleet.url}/v1", api_key=fleet.key) as api:
        whole = api.chat.completions.create(model="echo", messages=messages, max_tokens=300).choices[0].message.content
        stream: Any = api.chat.completions.create(model="echo", messages=messages, max_tokens=300, stream=True)
        events = resumed(api, stream)
        got = [next(events) for _ in range(5)]
        for member in fleet.gateways:
            member.kill()  # whichever has the stream
            member.start()
        got += list(events)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in got) == whole


@pytest.mark.services
def test_a_second_signal_ends_a_process_at_once(fresh: Callable[..., Fleet]) -> None:
    fleet = fresh(engine_echo_step_s=1.0).start(gateways=1, workers=1)
    [gateway], [worker] = fleet.gateways, fleet.workers
    with (
        fleet.client(gateway.url) as http,
        http.stream("POST", "/v1/completions", json={**BODY, "stream": True}) as reply,
    ):
        next(iter(reply.iter_lines()))
        for member in (worker, gateway):
            member.send(signal.SIGTERM)
            wait_until(lambda: member.probe("/readyz") != 200, "it drains")  # noqa: B023
            assert member.alive, "it waits for what runs"
            member.send(signal.SIGTERM)
            assert member.wait() in (0, -signal.SIGTERM)


@pytest.mark.services
def test_of_two_controls_one_leads_and_the_other_takes_over(fresh: Callable[..., Fleet]) -> None:
    fleet = fresh(sessions_turn_timeout_s=3, control_lease_s=1.0, engine_echo_step_s=0.01).start(
        gateways=1, workers=1, controls=2
    )

    def leads() -> list[float]:
        return [control.metric("axon_leads") for control in fleet.controls if control.alive]

    wait_until(lambda: sum(leads()) == 1, "one of them leads")
    leader = next(control for control in fleet.controls if control.metric("axon_leads"))
    leader.kill()
    wait_until(lambda: leads() == [1.0], "the other has taken over")
    fleet.workers[0].stop()
    with fleet.client(fleet.gateways[0].url) as http:
        expired = http.post("/v1/completions", json=BODY)  # nobody runs it: only a sweeper can end it
    assert (expired.status_code, expired.json()["error"]["code"]) == (504, "deadline_exceeded")
