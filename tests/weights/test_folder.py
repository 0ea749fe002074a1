"""A folder, or a .gguf file, of this machine as a source."""

import os
from pathlib import Path

import pytest

from axon.errors import FetchFailed, InvalidInput
from axon.weights.cache import WeightsCache
from axon.weights.opening import open_source
from axon.weights.source import parse_source
from tests.weights.conftest import model_files, same_bytes


def make(folder: Path) -> Path:
    folder.mkdir()
    for name, content in model_files("").items():
        (folder / name).write_bytes(content)
    return folder


async def test_a_folder_is_copied_so_that_later_edits_do_not_change_the_version(
    cache: WeightsCache, tmp_path: Path
) -> None:
    folder = make(tmp_path / "mine")
    source = open_source(parse_source(str(folder)))
    async with cache.opened(source) as first:
        (folder / "config.json").write_bytes(b"{}")
        assert same_bytes(first.folder, model_files(""), "")
    async with cache.opened(source) as second:
        assert second.digest != first.digest
    async with cache.opened(source, digest=first.digest) as again:
        assert same_bytes(again.folder, model_files(""), "")


async def test_a_gguf_file_is_taken_alone(cache: WeightsCache, tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"GGUF")
    (tmp_path / "y.gguf").write_bytes(b"GGUF")
    async with cache.opened(open_source(parse_source(str(tmp_path / "x.gguf")))) as weights:
        assert weights.gguf == weights.folder / "x.gguf"


async def test_a_file_that_changes_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    source = open_source(parse_source(str(folder)))
    file = next(each for each in (await source.listing()).files if each.name == "config.json")
    (folder / "config.json").write_bytes(b"{}")
    with pytest.raises(FetchFailed, match="has changed while it was read"):
        _ = [chunk async for chunk in source.read(file, 0)]


async def test_a_pipe_in_the_place_of_a_file_is_noticed_and_not_waited_for(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    source = open_source(parse_source(str(folder)))
    file = next(each for each in (await source.listing()).files if each.name == "config.json")
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")
    with pytest.raises(FetchFailed, match="no plain file any more"):
        _ = [chunk async for chunk in source.read(file, 0)]


async def test_a_link_is_not_followed(cache: WeightsCache, tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    (folder / "secret.json").symlink_to("/etc/passwd")
    with pytest.raises(InvalidInput, match=r"symbolic link.*cp -rL"):
        await open_source(parse_source(str(folder))).listing()


async def test_a_path_that_is_not_there_is_refused_with_what_may_be_meant(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"There is no .*/Qwen/Qwen3 on this machine.*hf://Qwen/Qwen3"):
        await open_source(parse_source(str(tmp_path / "Qwen" / "Qwen3"))).listing()
