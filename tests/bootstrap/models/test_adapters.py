"""An adapter's files in the weights cache: held, mended, fetched again, and never other bytes than its digest says."""

import asyncio
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from axon.bootstrap.models.adapters import fetch_adapter, fetching
from axon.domain.model.adapter import JobAdapter
from axon.errors import AxonError, FetchFailed, InvalidInput
from axon.settings import Settings
from axon.weights.config import WeightsConfig

WEIGHTS = "adapter_model.safetensors"
NUM_BYTES = 400_000


def make_files(folder: Path, number: int) -> Path:
    folder.mkdir(parents=True)
    save_file({"x": np.full(NUM_BYTES // 4, number, np.float32)}, folder / WEIGHTS)
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 4, "lora_alpha": 8}))
    return folder


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The cache has room for two adapters."""
    return Settings(models_dir=tmp_path / "models", weights=WeightsConfig(limit_gb=2.5 * NUM_BYTES / 1e9))


async def added(settings: Settings, folder: Path) -> JobAdapter:
    made = await fetch_adapter(settings, model="small", label="sql", source=str(folder))
    return made.for_job("")


def kept(settings: Settings) -> set[str]:
    assert settings.models_dir is not None
    return {path.name for path in (settings.models_dir / "by-digest").iterdir() if len(path.name) == 64}


async def test_what_nobody_holds_gives_way_and_what_is_held_does_not(settings: Settings, tmp_path: Path) -> None:
    fetch = fetching(settings)
    one, two, three, four = [await added(settings, make_files(tmp_path / f"a{number}", number)) for number in range(4)]
    assert kept(settings) == {three.digest, four.digest}
    first, second = await fetch(one), await fetch(two)
    assert kept(settings) == {one.digest, two.digest}
    with pytest.raises(FetchFailed) as refusal:
        await fetch(three)
    assert refusal.value.code == "disk_full"
    assert first.is_whole()
    assert second.is_whole()
    second.close()
    await asyncio.sleep(0.02)  # files' times have the grain of the kernel's tick
    first.close()
    (await fetch(three)).close()
    assert kept(settings) == {one.digest, three.digest}, "what was let go of first gives way"


@pytest.mark.parametrize("harm", ["removed", "emptied", "changed", "no manifest", "weights removed", "a link"])
async def test_what_was_lost_is_fetched_again_or_cannot_be_had(harm: str, settings: Settings, tmp_path: Path) -> None:
    source = make_files(tmp_path / "a", 1)
    adapter, fetch = await added(settings, source), fetching(settings)
    right = (source / WEIGHTS).read_bytes()
    assert settings.models_dir is not None
    folder = settings.models_dir / "by-digest" / adapter.digest

    def spoil() -> None:
        weights = folder / WEIGHTS
        match harm:
            case "removed":
                shutil.rmtree(folder)
            case "emptied":
                weights.write_bytes(b"")
            case "changed":
                weights.write_bytes(right[:-1] + b"\x7f")
            case "no manifest":
                (folder / "axon-files.json").unlink()
            case "weights removed":
                weights.unlink()
            case "a link":
                weights.rename(tmp_path / "moved")
                weights.symlink_to(source / WEIGHTS)

    held = await fetch(adapter)
    assert held.is_whole()
    spoil()
    assert held.is_whole() == (harm == "no manifest"), "its files are as they were"
    again = await fetch(adapter)
    held.close()
    assert again.is_whole()
    assert (again.folder / WEIGHTS).read_bytes() == right
    again.close()
    spoil_source(source)
    spoil()
    with pytest.raises(FetchFailed):
        await fetch(adapter)
    shutil.rmtree(source)
    with pytest.raises(AxonError):
        await fetch(adapter)


def spoil_source(source: Path) -> None:
    """The source has other files now: they are not what was registered."""
    shutil.rmtree(source)
    make_files(source, 2)


async def test_a_folder_that_is_no_adapter_is_refused_when_it_is_added(settings: Settings, tmp_path: Path) -> None:
    source = make_files(tmp_path / "a", 1)
    (source / "adapter_config.json").write_text('{"peft_type": "IA3"}')
    with pytest.raises(InvalidInput, match="cannot be served"):
        await added(settings, source)
