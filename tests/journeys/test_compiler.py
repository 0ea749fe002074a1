"""Grammars that end the process that compiles them, in the gateway's compiler and in the engine: one request ends."""

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from tests.journeys.planted import python_path
from tests.journeys.server import Server, wait_until
from tests.journeys.sse import pieces, text_of
from tests.journeys.test_resume import ask
from tests.journeys.test_structured import MODEL, SCHEMA

ECHO: dict[str, Any] = {"model": "echo", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 60}


class PlantedServer(Server):
    """A server whose compiler and engine end on certain texts."""

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "PYTHONPATH": python_path(self.data_dir.with_name("plants"))}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("planted") / "data"
    server = PlantedServer(folder, engine_kind="echo", engine_echo_step_s=0.002)
    try:
        yield server.start()
    finally:
        code = server.stop()
    assert code == 0, server.log[-3000:]


def compiler_pids(server: Server) -> list[int]:
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    return [pid for pid in map(int, children) if b"axon.text.compiler" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def form(schema: dict[str, Any]) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}}


def asked(server: Server, text: str) -> httpx.Response:
    with server.client() as http:
        return http.post("/v1/chat/completions", json={**ECHO, **form({"const": text})})


def test_a_schema_that_ends_the_compiler_is_refused_and_its_neighbours_are_answered(planted: Server) -> None:
    texts = ["one", "planted crash", "two", "three", "four"]
    with ThreadPoolExecutor(len(texts)) as threads:
        replies = dict(zip(texts, threads.map(lambda text: asked(planted, text), texts), strict=True))
    refused = replies.pop("planted crash")
    assert refused.status_code == 400
    error = refused.json()["error"]
    assert (error["param"], error["code"]) == ("response_format.json_schema.schema", "invalid_schema")
    assert error["message"].endswith("it could not be compiled.")
    for text, reply in replies.items():
        assert json.loads(reply.raise_for_status().json()["choices"][0]["message"]["content"]) == text
    wait_until(lambda: compiler_pids(planted), "there is a new compiler")
    before = compiler_pids(planted)
    assert asked(planted, "planted crash").json()["error"]["message"] == error["message"]
    assert compiler_pids(planted) == before, "what is known is not tried again"
    assert planted.log.count("grammars.compiler_died") == 2


def test_a_grammar_whose_compiling_ends_the_engine_ends_its_own_request_alone(planted: Server) -> None:
    with planted.client() as http:
        undisturbed = http.post("/v1/completions", json=ask(max_tokens=100, stream=False)).json()["choices"][0]["text"]
        with http.stream("POST", "/v1/completions", json=ask(max_tokens=100)) as neighbour:
            stream = pieces(neighbour.iter_lines())
            first = next(stream)
            poison = asked(planted, "planted in engines")
            beside = asked(planted, "beside it")
            rest = list(stream)
    assert (poison.status_code, poison.json()["error"]["code"]) == (500, "worker_crash")
    assert (text_of([first, *rest]), rest[-1].finish) == (undisturbed, "length")
    assert beside.json()["choices"][0]["message"]["content"] == '"beside it"'


@pytest.mark.model
def test_the_default_models_answer_follows_its_schema_though_the_compiler_was_killed(real: Server) -> None:
    for title in ("a first schema", "another one"):
        schema = {**SCHEMA, "title": title}
        body = {"model": MODEL, "messages": [{"role": "user", "content": "Describe a city."}], "max_tokens": 120}
        with real.client() as http:
            reply = http.post("/v1/chat/completions", json={**body, **form(schema), "temperature": 0})
        [choice] = reply.raise_for_status().json()["choices"]
        assert choice["finish_reason"] == "stop"
        Draft202012Validator(schema).validate(json.loads(choice["message"]["content"]))
        [pid] = compiler_pids(real)
        os.kill(pid, signal.SIGKILL)
