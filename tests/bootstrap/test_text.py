"""A gateway has a model's text side without its weights, and knows whether it is the workers' own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from axon.bootstrap.models.model import prepare_model, prepare_text
from axon.engine.load.convert.gguf import convert_gguf
from axon.settings import Settings
from tests.engine.builders import make_tiny_llama
from tests.engine.load.convert.gguf_files import write_gguf
from tests.journeys.server import REPOSITORY


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    return write_gguf(folder / "m.gguf", make_tiny_llama(folder / "tiny"))


WITHOUT_ENGINE = """
import sys
for name in ("torch", "gguf", "safetensors", "numpy"):
    sys.modules[name] = None
import axon.bootstrap.control.control, axon.bootstrap.gateway.gateway, axon.gateway.app
from axon.bootstrap.models.model import prepare_text
from axon.errors import Misconfigured
from axon.settings import load
try:
    print(prepare_text(load({"model": sys.argv[1], "data_dir": sys.argv[2]}).settings).mark)
except Misconfigured as error:
    print(error.message)
"""


def without_engine(model: Path, data_dir: Path) -> str:
    """What a gateway gets of the model where the engine's packages are not installed."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AXON_")}
    environment = {**clean, "PYTHONPATH": str(REPOSITORY / "src")}
    command = [sys.executable, "-c", WITHOUT_ENGINE, str(model), str(data_dir)]
    ran = subprocess.run(command, env=environment, cwd=data_dir, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_a_gateway_needs_none_of_the_engines_packages(source: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    convert_gguf(source, whole)
    assert without_engine(whole, tmp_path) == mark_of(whole, tmp_path)
    assert "axon-serving[gguf]" in without_engine(source, tmp_path)


def mark_of(folder: Path, data_dir: Path) -> str:
    return prepare_text(Settings(data_dir=data_dir, model=str(folder))).mark


def test_a_file_gives_its_text_before_it_is_converted_and_the_same_after(source: Path, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data", model=str(source))
    before = prepare_text(settings)
    assert settings.models_dir is not None
    assert not settings.models_dir.exists(), "it has written something into the models folder"
    model = prepare_model(settings, lambda _stage, _share: None)
    assert before.mark == model.text.mark == prepare_text(settings).mark
    assert before.tokenizer.encode("hello fleet") == model.text.tokenizer.encode("hello fleet")


def test_a_folder_without_its_weights_is_enough_and_another_template_is_noticed(source: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    convert_gguf(source, whole)
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        if (whole / name).exists():
            (bare / name).write_bytes((whole / name).read_bytes())
    assert mark_of(bare, tmp_path) == mark_of(whole, tmp_path)
    (bare / "chat_template.jinja").write_text("{{ messages[0]['content'] }}")
    assert mark_of(bare, tmp_path) != mark_of(whole, tmp_path)
