"""Other people's clients, unmodified, against a server with the real MiniLM."""

import json
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
from openai import OpenAI

from tests.conformance.clients import PROGRAMS, run
from tests.engine.encoder.golden_texts import DOCUMENTS, QUERIES
from tests.engine.encoder.make_golden_set import ORDERS
from tests.engine.encoder.minilm import minilm
from tests.journeys.conftest import PATIENT
from tests.journeys.server import Server, running, wait_until

MODEL = "minilm"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("minilm") / "data"
    with running(folder, model=minilm(), model_name=MODEL, **PATIENT) as server:
        yield server


@pytest.mark.long("vector programs")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("program", sorted(path.name for path in PROGRAMS.glob("*_vectors.py")))
def test_it_runs_as_it_does_against_openai(server: Server, tmp_path: Path, program: str) -> None:
    settings = {"BASE_URL": f"{server.url}/v1", "API_KEY": server.key, "MODEL": MODEL}
    command = ["python", str(PROGRAMS / program)]
    assert run(program.partition("_")[0], command, cwd=tmp_path, settings=settings).strip().endswith("ok")


def test_documents_are_put_in_the_order_that_sentence_transformers_finds(server: Server) -> None:
    orders = []
    with server.client() as http:
        for query in QUERIES:
            found = http.post("/v1/rerank", json={"model": MODEL, "query": query, "documents": DOCUMENTS}).json()
            orders.append([each["index"] for each in found["results"]])
    assert orders == json.loads(ORDERS.read_text())


def test_the_model_of_a_package_is_registered_and_served_beside_others(tmp_path: Path) -> None:
    settings = {"models": "one=echo;kind=echo", "models_dir": tmp_path / "models", **PATIENT}
    with running(tmp_path / "data", **settings) as server, server.client() as http:
        added = server.axon("models", "add", MODEL, str(minilm()), "--label", "v2", "--deploy")
        assert added.returncode == 0, added.stderr

        def listed() -> dict[str, tuple[str, list[str]]]:
            found = http.get("/v1/models").json()["data"]
            return {each["id"]: (each["state"], each["capabilities"]) for each in found}

        wait_until(lambda: listed().get(MODEL, ("", []))[0] == "ready", "the server has loaded it", 60)
        assert listed()[MODEL] == ("ready", ["embeddings"])
        found = http.post("/v1/embeddings", json={"model": MODEL, "input": "A man is playing guitar."}).json()
        assert len(found["data"][0]["embedding"]) == 384


def test_the_official_client_gets_vectors_that_tell_meanings_apart(server: Server) -> None:
    with OpenAI(base_url=f"{server.url}/v1", api_key=server.key, max_retries=0) as api:
        texts = ["A man is playing guitar.", "Somebody plays an instrument.", "The bread is in the oven."]
        found = [each.embedding for each in api.embeddings.create(model=MODEL, input=texts).data]
        plain = api.embeddings.create(model=MODEL, input=texts[0], encoding_format="float").data[0].embedding
        with pytest.raises(openai.BadRequestError, match="embedding model"):
            api.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hi"}])
        with pytest.raises(openai.BadRequestError, match="maximum context length is 256 tokens"):
            api.embeddings.create(model=MODEL, input="word " * 300)
        with pytest.raises(openai.BadRequestError, match="allows 384"):
            api.embeddings.create(model=MODEL, input="a", dimensions=64)
    assert plain == found[0]
    near, far = (sum(a * b for a, b in zip(found[0], other, strict=True)) for other in found[1:])
    assert near > far + 0.2
