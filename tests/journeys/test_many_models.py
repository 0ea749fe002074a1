"""Several models in one server: each is asked by its name, answers by itself and is listed."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from axon.bootstrap.models.model import find_folder
from axon.settings import Settings
from tests.engine.builders import RELATIVES, make_tiny_llama
from tests.engine.load.convert.gguf_files import write_gguf
from tests.journeys.conftest import PATIENT, Fresh
from tests.journeys.server import MODELS, Server, running, wait_until
from tests.weights.models import make_model

QUESTION: Any = [{"role": "user", "content": "he said"}]
TWO = "one=echo;kind=echo,two=echo;kind=echo;max_model_len=128"


@pytest.fixture(scope="module")
def both(place: Callable[[], dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The default model, and a tiny checkpoint in another arithmetic."""
    folder = tmp_path_factory.mktemp("both")
    tiny = write_gguf(folder / "tiny.gguf", make_tiny_llama(folder / "weights", **RELATIVES["qwen3"]))
    find_folder(Settings(data_dir=folder, models_dir=MODELS), lambda *_: None)  # made once, for all tests
    models = f"small=smollm2-135m-instruct,tiny={tiny};dtype=float32"
    with running(folder / "data", models=models, **PATIENT, **place()) as server:
        yield server


def ask(client: openai.OpenAI, model: str, **more: Any) -> str:
    stream = client.chat.completions.create(
        model=model, messages=QUESTION, max_tokens=24, temperature=0, stream=True, **more
    )
    chunks = list(stream)
    assert {chunk.model for chunk in chunks} == {model}
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


@pytest.mark.model
def test_interleaved_streams_of_two_real_models_say_what_each_says_alone(both: Server) -> None:
    client = openai.OpenAI(base_url=f"{both.url}/v1", api_key=both.key)
    assert [model.id for model in client.models.list()] == ["small", "tiny"]
    alone = {model: ask(client, model) for model in ("small", "tiny")}
    assert alone["small"] != alone["tiny"]
    order = ["small", "tiny"] * 6
    with ThreadPoolExecutor(12) as pool:
        assert list(pool.map(lambda model: ask(client, model), order)) == [alone[model] for model in order]


@pytest.mark.model
def test_a_chat_at_the_terminal_switches_between_them(both: Server) -> None:
    said = both.axon(
        "chat",
        "--url",
        both.url,
        "--model",
        "small",
        "--max-tokens",
        "16",
        said="/model\nhe said\n/model tiny\nhe said\n",
    )
    assert said.returncode == 0, said.stderr
    assert "* small" in said.stdout
    assert "Talking to tiny." in said.stdout


def test_each_model_has_its_own_context_and_engine_and_both_outlive_a_crash(fresh: Fresh) -> None:
    server = fresh.start(models=TWO)
    assert "Models   one, two" in server.screen
    assert len(server.engine_pids()) == 2
    prompt = "x" * 200
    with server.client() as http:
        listed = {each["id"]: each["max_model_len"] for each in http.get("/v1/models").json()["data"]}
        assert listed["two"] == 128 < listed["one"]
        answers = {
            model: http.post("/v1/completions", json={"model": model, "prompt": prompt, "max_tokens": 8})
            for model in ("one", "two")
        }
        assert answers["one"].json()["choices"][0]["text"] == prompt[:8]
        assert answers["two"].status_code == 400
        assert "128 tokens" in answers["two"].json()["error"]["message"]
        unknown = http.post("/v1/completions", json={"model": "three", "prompt": "x"})
        assert unknown.status_code == 404
        assert "Available: one, two." in unknown.json()["error"]["message"]
    server.kill()
    again = fresh.start(models=TWO)
    with again.client() as http:
        for model in ("one", "two"):
            body = {"model": model, "prompt": "again", "max_tokens": 5}
            assert http.post("/v1/completions", json=body).json()["choices"][0]["text"] == "again"
            assert again.metric(rf'axon_kv_blocks\{{model="{model}",state="free"\}}') >= 0


def test_a_busy_model_does_not_take_the_place_of_the_other(fresh: Fresh) -> None:
    server = fresh.start(models="slow=echo;kind=echo;echo_step_s=0.2;max_sequences=1,quick=echo;kind=echo")
    with server.client() as http, ThreadPoolExecutor(4) as pool:
        slow = [
            pool.submit(http.post, "/v1/completions", json={"model": "slow", "prompt": "s" * 8, "max_tokens": 8})
            for _ in range(3)
        ]
        quick = http.post("/v1/completions", json={"model": "quick", "prompt": "quick", "max_tokens": 5})
        assert quick.json()["choices"][0]["text"] == "quick"
        assert not all(each.done() for each in slow), "the slow ones still run"
        assert [each.result().json()["choices"][0]["text"] for each in slow] == ["s" * 8] * 3


def test_a_conversation_can_go_on_with_another_model(fresh: Fresh) -> None:
    server = fresh.start(models=TWO)
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key=server.key)
    first = client.responses.create(model="one", input="hello")
    second = client.responses.create(model="two", input="x", previous_response_id=first.id)
    assert (first.model, second.model) == ("one", "two")


def test_a_model_that_cannot_be_found_ends_the_start_with_its_name(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", models="one=echo;kind=echo,gone=/nowhere/at/all")
    ended = server.axon("serve")
    assert ended.returncode != 0
    assert "/nowhere/at/all" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_registered_model_is_served_at_once_and_from_the_next_start_on(tmp_path: Path) -> None:
    make_model(tmp_path / "tiny")
    data, folder = tmp_path / "data", tmp_path / "tiny"
    settings = {"engine_dtype": "float32", "models": "one=echo;kind=echo", "models_dir": tmp_path / "models"}
    with running(data, **settings) as server, server.client() as http:
        added = server.axon("models", "add", "tiny", str(folder), "--label", "v1", "--deploy")
        assert added.returncode == 0, added.stderr
        wait_until(lambda: states(http) == {"one": "ready", "tiny": "ready"}, "the server has loaded it", 60)
        said = complete(http)
        assert said["usage"]["completion_tokens"] > 0
    with running(data, **settings) as server, server.client() as http:
        assert complete(http)["choices"] == said["choices"]
        assert states(http) == {"one": "ready", "tiny": "ready"}
        assert server.axon("deployments", "remove", "tiny").returncode == 0
        wait_until(lambda: len(server.engine_pids()) == 1, "the server has unloaded it", 60)
        assert states(http) == {"one": "ready"}


def states(http: httpx.Client) -> dict[str, str]:
    """The state of each model."""
    return {each["id"]: each["state"] for each in http.get("/v1/models").json()["data"]}


def complete(http: httpx.Client) -> dict[str, Any]:
    body = {"model": "tiny", "prompt": "he said", "max_tokens": 4, "temperature": 0}
    answer: dict[str, Any] = http.post("/v1/completions", json=body).json()
    assert answer["system_fingerprint"] == "tiny@v1"
    return answer
