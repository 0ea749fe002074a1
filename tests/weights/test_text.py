"""Tokenizer and template without the weights: small files of a folder, the header of a .gguf file."""

from pathlib import Path

from axon.bootstrap.models.fetching import fetch_version, fetch_version_text
from axon.settings import Settings
from axon.weights.gguf_header import header_bytes
from axon.weights.names import TEXT_FILES
from axon.weights.text import fetch_text
from tests.weights.conftest import bucket_source
from tests.weights.models import make_model
from tests.weights.object_server import Files

_TIMEOUT_S = 60.0


def no_gguf(_: Path, __: Path) -> None:
    raise AssertionError("there is none")


async def test_of_a_folder_only_the_small_files_are_fetched_and_only_once(
    tmp_path: Path, files: Files, endpoint: str
) -> None:
    for _ in range(2):
        folder = await fetch_text(bucket_source(endpoint), tmp_path, "d" * 64, convert=no_gguf, timeout_s=_TIMEOUT_S)
    assert {path.name for path in folder.iterdir()} == {
        name for name in TEXT_FILES if f"models/tiny/{name}" in files.content
    }
    assert all(get.name.removeprefix("models/tiny/") in TEXT_FILES for get in files.gets)
    assert len(files.gets) == len(list(folder.iterdir()))


async def test_of_a_gguf_file_only_the_header_is_fetched(tmp_path: Path, files: Files, endpoint: str) -> None:
    """The file is made long, so that its tensors would show in what the server sent."""
    make_model(tmp_path / "tiny")
    content = (tmp_path / "tiny.gguf").read_bytes()
    files.content = {"models/tiny/x.gguf": content + bytes(64 << 20)}
    files.pause_s = 0.002
    header = header_bytes(content)
    assert header is not None
    assert header < len(content)
    converted: list[int] = []

    def convert(gguf: Path, folder: Path) -> None:
        found = gguf.read_bytes()
        converted.append(gguf.stat().st_blocks * 512)
        assert found[:header] == content[:header]
        assert len(found) == len(files.content["models/tiny/x.gguf"])
        (folder / "tokenizer.json").write_text("{}")

    folder = await fetch_text(bucket_source(endpoint), tmp_path, "d" * 64, convert=convert, timeout_s=_TIMEOUT_S)
    assert [path.name for path in folder.iterdir()] == ["tokenizer.json"]
    assert converted[0] < 1 << 20
    assert files.num_sent < 32 << 20


async def test_a_gateway_has_the_text_that_the_version_was_registered_with(tmp_path: Path) -> None:
    make_model(tmp_path / "tiny")
    worker, gateway = Settings(data_dir=tmp_path / "worker"), Settings(data_dir=tmp_path / "gateway")
    for source in ("tiny", "tiny.gguf"):
        fetched = await fetch_version(worker, model="tiny", source=str(tmp_path / source))
        text = await fetch_version_text(gateway, fetched.version)
        assert text.mark == fetched.version.text
        assert gateway.models_dir is not None
        kept = gateway.models_dir / "by-digest" / "text" / fetched.version.digest
        assert not [path for path in kept.rglob("*") if path.suffix in (".safetensors", ".gguf")]


def test_a_header_is_measured_from_any_prefix_that_holds_it(tmp_path: Path) -> None:
    make_model(tmp_path / "tiny")
    content = (tmp_path / "tiny.gguf").read_bytes()
    length = header_bytes(content)
    assert length is not None
    assert header_bytes(content[:length]) == length
    assert all(header_bytes(content[:cut]) is None for cut in range(0, length, 997))
    assert header_bytes(content[: length - 1]) is None
