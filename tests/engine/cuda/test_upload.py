"""Weights on their way to a device: here the CPU stands for it, and every byte must arrive where it belongs."""

from pathlib import Path

import pytest
import torch

from axon.engine.cuda.weights import upload
from axon.engine.cuda.weights.upload import Upload
from axon.engine.load.weights import Weights
from tests.engine.builders import make_tiny_llama

CPU = torch.device("cpu")
STACKED = [f"model.layers.0.self_attn.{name}_proj.weight" for name in "qkv"]
SINGLE = ["model.embed_tokens.weight", "model.norm.weight", "model.layers.1.mlp.down_proj.weight"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_tensor_is_that_of_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype) -> None:
    monkeypatch.setattr(upload, "_CHUNK_BYTES", 1000)  # many chunks, the last of each tensor a short one
    folder = make_tiny_llama(tmp_path)
    with torch.inference_mode(), Weights(folder, dtype) as weights:
        with Upload(weights, CPU) as source:
            taken = {name: source.take(name) for name in SINGLE}
            stacked = source.take_stacked(STACKED)
            source.finish()
        for name, tensor in taken.items():
            assert torch.equal(tensor, weights.take(name))
        assert torch.equal(stacked, weights.take_stacked(STACKED))


def test_a_file_that_cannot_be_read_is_an_error_at_the_end(tmp_path: Path) -> None:
    folder = make_tiny_llama(tmp_path)
    with Weights(folder, torch.float32) as weights:
        (folder / "model.safetensors").rename(folder / "elsewhere")
        with pytest.raises(FileNotFoundError), torch.inference_mode(), Upload(weights, CPU) as source:
            source.take(SINGLE[0])


def test_an_error_of_the_caller_ends_the_threads(tmp_path: Path) -> None:
    folder = make_tiny_llama(tmp_path)
    with Weights(folder, torch.float32) as weights:
        source = Upload(weights, CPU)
        threads = list(source._threads)
        with pytest.raises(RuntimeError, match="ours"), source:
            raise RuntimeError("ours")
        assert not any(thread.is_alive() for thread in threads)


def test_what_was_taken_is_whole_once_it_has_settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload, "_CHUNK_BYTES", 1000)
    folder = make_tiny_llama(tmp_path)
    with torch.inference_mode(), Weights(folder, torch.float32) as weights, Upload(weights, CPU) as source:
        for name in SINGLE:
            tensor = source.take(name)
            source.settle()
            assert torch.equal(tensor, weights.take(name))
        source.finish()


def test_a_file_that_cannot_be_read_is_an_error_when_it_settles(tmp_path: Path) -> None:
    folder = make_tiny_llama(tmp_path)
    with Weights(folder, torch.float32) as weights:
        (folder / "model.safetensors").rename(folder / "elsewhere")
        with pytest.raises(FileNotFoundError), torch.inference_mode(), Upload(weights, CPU) as source:
            settled(source)


def settled(source: Upload) -> None:
    source.take(SINGLE[0])
    source.settle()
