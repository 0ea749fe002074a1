"""A fleet answers as one server does, whichever gateway a request meets."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.fleet.__main__ import write_environment
from tests.fleet.fleet import Fleet
from tests.journeys.server import REPOSITORY, wait_until
from tests.journeys.sse import Piece, pieces, text_of

pytestmark = pytest.mark.services

PROMPT = "Whichever gateway a request meets, größer, 更大, it is one fleet. " * 4


def ask(**fields: Any) -> dict[str, Any]:
    return {"model": "echo", "prompt": PROMPT, "max_tokens": 250, "ignore_eos": True, "temperature": 0, **fields}


def read(http: httpx.Client, stream_id: str = "", after: int = 0, num_pieces: int | None = None) -> Any:
    """A new stream, or one from ``after`` on; its id and so many of its pieces."""
    way = ("GET", f"/v1/streams/{stream_id}?after={after}") if stream_id else ("POST", "/v1/completions")
    body = None if stream_id else ask(stream=True)
    got: list[Piece] = []
    with http.stream(*way, json=body) as reply:
        assert reply.status_code == 200, reply.read()
        for piece in pieces(reply.iter_lines()):
            got.append(piece)
            if len(got) == num_pieces:
                break
        return reply.headers["x-axon-stream"], got


def test_the_operator_meets_the_fleet_by_a_file_that_a_shell_reads(fleet: Fleet, tmp_path: Path) -> None:
    write_environment(tmp_path / "axon.env", fleet)
    assert (tmp_path / "axon.env").stat().st_mode & 0o077 == 0
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AXON_")}
    key = subprocess.run(
        ["bash", "-c", f". ./axon.env && '{sys.executable}' -m axon keys create --tenant operated"],
        cwd=tmp_path,
        env=clean | {"PYTHONPATH": str(REPOSITORY / "src")},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.strip()
    assert (
        httpx.get(f"{fleet.url}/v1/models", headers={"Authorization": f"Bearer {key}"}, timeout=60).status_code == 200
    )


def test_an_unmodified_client_chats_through_the_edge(fleet: Fleet) -> None:
    with openai.OpenAI(base_url=f"{fleet.url}/v1", api_key=fleet.key) as api:
        assert [model.id for model in api.models.list()] == ["echo"]
        messages: Any = [{"role": "user", "content": "hello"}]
        whole = api.chat.completions.create(model="echo", messages=messages, max_tokens=30)
        stream = api.chat.completions.create(model="echo", messages=messages, max_tokens=30, stream=True)
        said = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
        assert said == whole.choices[0].message.content
        assert said


def test_every_gateway_answers_the_same(fleet: Fleet) -> None:
    answers = []
    for member in fleet.gateways:
        with fleet.client(member.url) as http:
            assert http.get("/readyz").status_code == 200
            answers.append(http.post("/v1/completions", json=ask()).json()["choices"][0]["text"])
            model = http.get("/v1/models/echo").json()
            assert model["max_model_len"] == 8192
            assert model["version"].startswith("fp_")
    assert len(set(answers)) == 1


def test_a_stream_is_not_held_back_on_its_way(fleet: Fleet) -> None:
    with fleet.client() as http, http.stream("POST", "/v1/completions", json=ask(stream=True)) as reply:
        stream = pieces(reply.iter_lines())
        first = next(stream)
        assert sum(worker.metric("axon_requests_running") for worker in fleet.workers) > 0, "it has ended already"
        assert first.seq < 250
        assert list(stream)[-1].finish == "length"


@pytest.mark.parametrize("way", ["directly", "through the edge"])
def test_a_stream_goes_on_at_another_gateway(fleet: Fleet, way: str) -> None:
    first, second = (each.url for each in fleet.gateways) if way == "directly" else (fleet.url, fleet.url)
    with fleet.client(first) as here, fleet.client(second) as there:
        whole = here.post("/v1/completions", json=ask()).json()["choices"][0]["text"]
        stream_id, before = read(here, num_pieces=20)
        _, rest = read(there, stream_id, after=before[-1].seq)
    assert text_of(before) + text_of(rest) == whole
    assert rest[-1].finish == "length"


def test_a_conversation_goes_on_at_another_gateway(fleet: Fleet) -> None:
    first, second = fleet.gateways
    with fleet.client(first.url) as here, fleet.client(second.url) as there:
        one = here.post("/v1/responses", json={"model": "echo", "input": "My name is Ada.", "max_output_tokens": 60})
        assert one.status_code == 200, one.text
        two = there.post(
            "/v1/responses",
            json={
                "model": "echo",
                "input": "What is it?",
                "previous_response_id": one.json()["id"],
                "max_output_tokens": 20,
            },
        )
        assert "My name is Ada."[:10] in two.json()["output"][0]["content"][0]["text"]
        shown = here.get(f"/v1/responses/{two.json()['id']}")
        assert shown.json()["previous_response_id"] == one.json()["id"]


def test_a_response_in_the_background_is_read_at_another_gateway(fleet: Fleet) -> None:
    first, second = fleet.gateways
    with fleet.client(first.url) as here, fleet.client(second.url) as there:
        made = here.post("/v1/responses", json={"model": "echo", "input": "hello", "background": True}).json()
        wait_until(
            lambda: there.get(f"/v1/responses/{made['id']}").json()["status"] in ("completed", "incomplete"),
            "the response is whole",
        )


def test_the_same_request_at_two_gateways_is_one_turn(fleet: Fleet) -> None:
    headers = {"Idempotency-Key": "once-in-the-fleet"}
    ids = []
    for member in fleet.gateways:
        with fleet.client(member.url) as http:
            ids.append(http.post("/v1/completions", json=ask(), headers=headers).json()["id"])
    assert len(set(ids)) == 1


def test_no_process_but_a_worker_has_a_model_or_torch_in_it(fleet: Fleet) -> None:
    for member in (*fleet.gateways, *fleet.controls):
        mapped = Path(f"/proc/{member.pid}/maps").read_text()
        assert "torch" not in mapped, f"{member.name} has loaded torch"
        assert ".safetensors" not in mapped
        assert member.engine_pids() == []


def test_a_gateway_profiles_every_process_of_the_fleet(fleet: Fleet) -> None:
    key = json.loads(fleet.axon("keys", "create", "--scope", "admin", "--json"))["key"]
    with httpx.Client(base_url=fleet.url, headers={"Authorization": f"Bearer {key}"}, timeout=120) as admin:
        wanted, found = {"gateway": 2, "worker": 2, "engine": 2, "control": 1}, list[dict[str, Any]]()

        def all_answer() -> bool:
            found[:] = admin.get("/v1/admin/processes").json()["data"]
            return Counter(each["role"] for each in found) == wanted

        wait_until(all_answer, "all of them answer in time")
        one_of = {each["role"]: each["name"] for each in found}
        for role in wanted:
            body = {"kind": "cpu", "process": one_of[role], "seconds": 0.1, "format": "json"}
            reply = admin.post("/v1/admin/profiles", json=body)
            assert (reply.status_code, reply.json().get("process")) == (200, one_of[role]), reply.text
            assert any("axon/" in frame for frame in reply.json()["frames"])
