"""Ollama's API, so that editors find the server: models, chats and prompts, as lines of JSON, with a key or without."""

import json
from typing import Any

import httpx
import pytest

from tests.journeys.conftest import Fresh
from tests.journeys.server import Server

CHAT: dict[str, Any] = {"model": "echo", "messages": [{"role": "user", "content": "hello"}]}
ECHO = "user: hello\nassistant:"


def lines(reply: httpx.Response) -> list[dict[str, Any]]:
    assert reply.status_code == 200, reply.text
    return [json.loads(line) for line in reply.text.splitlines()]


def test_a_chat_streams_lines_that_end_with_what_it_took(echo: Server) -> None:
    with echo.client() as http:
        reply = http.post("/api/chat", json=CHAT)
        assert reply.headers["content-type"] == "application/x-ndjson"
        *parts, last = lines(reply)
    assert "".join(part["message"]["content"] for part in parts) == ECHO
    assert not any(part["done"] for part in parts)
    assert (last["done"], last["done_reason"], last["message"]["content"]) == (True, "stop", "")
    assert last["eval_count"] == len(ECHO.encode()) + 1
    assert last["prompt_eval_count"] > 0
    spent = [last[name] for name in ("load_duration", "prompt_eval_duration", "eval_duration")]
    assert all(isinstance(each, int) for each in spent)
    assert sum(spent) == pytest.approx(last["total_duration"], abs=10)


def test_a_prompt_is_answered_whole_and_raw(echo: Server) -> None:
    with echo.client() as http:
        ask = {"model": "echo:latest", "prompt": "hello", "stream": False}
        whole = http.post("/api/generate", json=ask).json()
        assert (whole["model"], whole["response"], whole["done_reason"]) == ("echo", ECHO, "stop")
        told = http.post("/api/generate", json={**ask, "system": "Be brief."}).json()
        assert told["response"] == f"system: Be brief.\n{ECHO}"
        raw = http.post("/api/generate", json={**ask, "raw": True}).json()
        assert raw["response"] == "hello"


def test_options_are_honoured_refused_by_name_or_hints(echo: Server) -> None:
    with echo.client() as http:
        ask = {**CHAT, "stream": False}
        honoured = {
            "num_predict": 4,
            "temperature": 0,
            "top_k": 5,
            "seed": 1,
            "repeat_penalty": 1.0,
            "repeat_last_n": 64,
        }
        cut = http.post("/api/chat", json={**ask, "options": honoured}).json()
        assert (cut["message"]["content"], cut["done_reason"]) == ("user", "length")
        stop = http.post("/api/chat", json={**ask, "options": {"stop": ["ello"], "num_predict": -1}}).json()
        assert stop["message"]["content"] == "user: h"
        for name, value in {"mirostat": 2, "tfs_z": 0.5}.items():
            refused = http.post("/api/chat", json={**ask, "options": {name: value}})
            assert refused.status_code == 400
            assert f"'options.{name}' is not supported" in refused.json()["error"]
        bad: dict[str, Any] = {"num_predict": "many", "temperature": -1, "repeat_penalty": 0}
        for name, value in bad.items():
            wrong = http.post("/api/chat", json={**ask, "options": {name: value}})
            assert (wrong.status_code, f"'options.{name}'" in wrong.json()["error"]) == (400, True), wrong.text
        refused = http.post("/api/generate", json={"model": "echo", "prompt": "a", "suffix": "b"})
        assert "'suffix' is not supported" in refused.json()["error"]


def test_a_format_and_log_probabilities_are_those_of_a_chat(echo: Server) -> None:
    with echo.client() as http:
        schema: dict[str, Any] = {"type": "object", "properties": {"a": {"enum": ["b"]}}, "required": ["a"]}
        schema["additionalProperties"] = False
        formed = http.post("/api/chat", json={**CHAT, "stream": False, "format": schema}).json()
        assert json.loads(formed["message"]["content"]) == {"a": "b"}
        assert http.post("/api/chat", json={**CHAT, "format": "yaml"}).status_code == 400
        scored = http.post("/api/chat", json={**CHAT, "stream": False, "logprobs": True, "top_logprobs": 1}).json()
        assert scored["logprobs"][0]["token"] == "u"
        assert len(scored["logprobs"][0]["top_logprobs"]) == 1


def test_editors_find_the_models(echo: Server) -> None:
    with echo.client() as http:
        assert [int(part) for part in http.get("/api/version").json()["version"].split(".")] >= [0, 6, 4]
        for path in ("/api/tags", "/api/ps"):
            assert [each["name"] for each in http.get(path).json()["models"]] == ["echo"]
        shown = http.post("/api/show", json={"model": "echo:latest"}).json()
        assert shown["capabilities"][:2] == ["completion", "tools"]
        assert shown["model_info"][f"{shown['model_info']['general.architecture']}.context_length"] > 0
        loaded = http.post("/api/generate", json={"model": "echo"})
        assert lines(loaded)[0]["done_reason"] == "load"


def test_errors_have_ollamas_shape(echo: Server) -> None:
    with echo.client() as http:
        unknown = http.post("/api/chat", json={**CHAT, "model": "nothing"})
        assert (unknown.status_code, "nothing" in unknown.json()["error"]) == (404, True)
        embeds = http.post("/api/embed", json={"model": "echo", "input": "a"})
        assert (embeds.status_code, "'echo'" in embeds.json()["error"]) == (400, True)
        assert http.post("/api/pull", json={"model": "echo"}).status_code == 404
    for key in ({}, {"Authorization": "Bearer axk_wrong"}):
        reply = httpx.get(f"{echo.url}/api/tags", headers=key, timeout=60)
        assert (reply.status_code, type(reply.json()["error"])) == (401, str)


def test_a_program_on_this_machine_needs_no_key_if_the_setting_says_so(fresh: Fresh) -> None:
    server = fresh.start(gateway_ollama_without_key="true")
    with httpx.Client(base_url=server.url, timeout=60) as http:
        assert lines(http.post("/api/chat", json=CHAT))[-1]["done"]
        assert http.get("/v1/models").status_code == 401  # Ollama's routes alone
        port = server.url.rpartition(":")[2]
        for headers in (
            {"Origin": "https://example.com"},
            {"X-Forwarded-For": "127.0.0.1"},
            {"Host": f"example.com:{port}"},
            {"Authorization": "Bearer axk_wrong"},
        ):
            assert http.get("/api/tags", headers=headers).status_code == 401, headers
        usage = http.get("/v1/usage", headers={"Authorization": f"Bearer {server.key}"}).json()
        assert usage


def test_tokens_of_a_prompt_and_of_a_chat_and_back(echo: Server) -> None:
    with echo.client() as http:
        found = http.post("/tokenize", json={"model": "echo", "prompt": "hé", "return_token_strs": True}).json()
        assert found == {
            "count": 3,
            "max_model_len": found["max_model_len"],
            "tokens": [*"hé".encode()],
            "token_strs": ["h", "\ufffd", "\ufffd"],
        }
        assert http.post("/detokenize", json={"tokens": found["tokens"]}).json() == {"prompt": "hé"}
        chat = http.post("/tokenize", json={"messages": CHAT["messages"]}).json()
        assert bytes(chat["tokens"]).decode() == ECHO
        assert chat["token_strs"] is None
        told = http.post("/v1/chat/completions", json={**CHAT, "max_tokens": 1}).json()
        assert told["usage"]["prompt_tokens"] == chat["count"]
        wrong: dict[str, list[dict[str, Any]]] = {
            "/tokenize": [{}, {"prompt": "a", "messages": CHAT["messages"]}, {"prompt": 1}, {"messages": []}],
            "/detokenize": [{}, {"tokens": "a"}, {"tokens": [-1]}, {"tokens": [1 << 20]}],
        }
        for path, bodies in wrong.items():
            for body in bodies:
                assert http.post(path, json={"model": "echo", **body}).status_code == 400, body
        refused = http.post("/tokenize", json={"messages": CHAT["messages"], "add_generation_prompt": False})
        assert refused.json()["error"]["param"] == "add_generation_prompt"
