"""``axon serve --model``: a folder, a GGUF file, and one that cannot be served."""

import subprocess
import sys
from pathlib import Path

import pytest

from axon.engine.engine import Engine
from axon.engine.load.convert.gguf import convert_gguf
from axon.text.tokenizer import load_tokenizer
from tests.engine.builders import RELATIVES, make_add, make_tiny_llama, run_to_end, with_config
from tests.engine.load.convert.gguf_files import write_gguf
from tests.journeys.server import Server, running


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_gguf(tmp_path / "tiny-qwen3.gguf", make_tiny_llama(tmp_path / "weights", **RELATIVES["qwen3"]))


def expected_text(folder: Path, prompt: str) -> str:
    tokenizer = load_tokenizer(folder)
    add = make_add(prompt=tokenizer.encode(prompt), max_tokens=12)
    return tokenizer.decode(run_to_end(Engine(with_config(), folder), [add])["a"])


def complete(server: Server, prompt: str) -> str:
    request = {"model": "tiny-qwen3", "prompt": prompt, "max_tokens": 12, "temperature": 0}
    with server.client() as client:
        response = client.post("/v1/completions", json=request)
    assert response.status_code == 200, response.text
    text: str = response.json()["choices"][0]["text"]
    return text


def test_a_gguf_file_is_served_and_chats_by_its_own_template(source: Path, tmp_path: Path) -> None:
    models = tmp_path / "models"
    with running(tmp_path / "data", model=source, models_dir=models, engine_dtype="float32") as server:
        assert complete(server, "he said") == expected_text(models / "tiny-qwen3", "he said")
        messages = [{"role": "user", "content": "he"}]
        with server.client() as client:
            chat = client.post(
                "/v1/chat/completions", json={"model": "tiny-qwen3", "messages": messages, "max_tokens": 3}
            )
        assert chat.json()["usage"]["prompt_tokens"] == 2, "the template puts an end token behind the text"


def test_a_folder_without_a_chat_template_completes_and_says_why_it_does_not_chat(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tiny-qwen3"
    convert_gguf(source, folder)
    (folder / "chat_template.jinja").unlink()
    (folder / "axon.json").unlink()
    with running(tmp_path / "data", model=folder, engine_dtype="float32") as server:
        assert complete(server, "he said") == expected_text(folder, "he said")
        messages = [{"role": "user", "content": "he"}]
        with server.client() as client:
            chat = client.post("/v1/chat/completions", json={"model": "tiny-qwen3", "messages": messages})
        assert chat.status_code == 400
        assert "no chat template; use completions" in chat.json()["error"]["message"]


def test_a_model_that_cannot_be_served_ends_the_command_with_one_sentence(source: Path, tmp_path: Path) -> None:
    whole = source.read_bytes()
    source.write_bytes(whole[: len(whole) // 2])
    server = Server(tmp_path / "data", model=source, models_dir=tmp_path / "models")
    command = [sys.executable, "-m", "axon", "serve"]
    ended = subprocess.run(command, env=server.environment, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ended.returncode != 0
    assert "may be cut short" in " ".join(ended.stderr.split())
    assert "Traceback" not in ended.stderr
    assert not list((tmp_path / "models").glob("*")), "half a conversion is none"
