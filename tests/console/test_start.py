"""A server that cannot start says so in one sentence, before it has converted or loaded anything."""

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from axon.bootstrap.models.model import find_folder
from axon.errors import Misconfigured
from axon.settings import Settings
from tests.console.program import Axon
from tests.engine.builders import make_tiny_llama
from tests.engine.load.convert.gguf_files import write_gguf


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield int(other.getsockname()[1])


def refused(axon: Axon, *arguments: str) -> str:
    """The one sentence; nothing was converted for it."""
    ran = axon("serve", *arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert len(ran.stderr.splitlines()) == 1, ran.stderr
    return ran.stderr


def test_a_gpu_that_is_not_there_is_told_before_the_model_is_converted(axon: Axon, tmp_path: Path) -> None:
    said = refused(axon, "--set", "engine.device=cuda", "--port", "0", "--metrics-port", "0")
    assert said.startswith("axon: engine.device = cuda, but there is no NVIDIA GPU")
    assert not (tmp_path / "data" / "models").exists()


def test_a_metrics_port_in_use_is_told_by_its_flag_before_the_model_is_converted(
    axon: Axon, tmp_path: Path, taken_port: int
) -> None:
    said = refused(axon, "--port", "0", "--metrics-port", str(taken_port))
    assert f"Cannot listen on 127.0.0.1:{taken_port}" in said
    assert "--metrics-port" in said
    assert "gateway.metrics_port" not in said
    assert not (tmp_path / "data" / "models").exists()


class Disk(NamedTuple):
    total: int
    used: int
    free: int


def test_a_full_disk_is_told_with_folder_and_space_before_the_model_is_converted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_gguf(tmp_path / "m.gguf", make_tiny_llama(tmp_path / "tiny"))
    settings = Settings(data_dir=tmp_path / "data", model=str(source))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(10**9, 10**9 - 5_000_000, 5_000_000))
    with pytest.raises(Misconfigured) as told:
        find_folder(settings, lambda _stage, _share: pytest.fail("it has begun to convert"))
    said = told.value.message
    assert str(tmp_path / "data" / "models") in said
    assert "5 MB are free" in said
    assert "takes 17 MB" in said
    assert not (tmp_path / "data").exists()


def test_the_space_that_is_asked_for_is_what_a_conversion_takes(tmp_path: Path) -> None:
    from axon.engine.load.convert.gguf import space_needed

    source = write_gguf(tmp_path / "m.gguf", make_tiny_llama(tmp_path / "tiny"))
    folder = find_folder(Settings(data_dir=tmp_path, model=str(source)), lambda _stage, _share: None)
    written = (folder / "model.safetensors").stat().st_size
    assert 0 <= written - space_needed(source, packed=False) < 10_000  # its header
