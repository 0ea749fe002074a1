"""Where an engine runs, and what its settings leave to the device."""

import ctypes
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from axon.engine import backend
from axon.engine.backend import choose_device, choose_dtype
from axon.engine.config import EngineConfig, for_device
from axon.engine.load.architecture import read_architecture
from axon.errors import Misconfigured
from tests.engine.builders import make_tiny_llama


@pytest.fixture(params=[False, True], ids=["no GPU", "a GPU"])
def has_gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(backend, "has_gpu", lambda: request.param)
    return bool(request.param)


def test_auto_takes_a_gpu_where_there_is_one(has_gpu: bool) -> None:
    assert choose_device(EngineConfig()) == ("cuda" if has_gpu else "cpu")
    assert choose_device(EngineConfig(device="cpu")) == "cpu"


def test_arithmetic_that_a_gpu_does_not_have_stays_on_the_cpu(has_gpu: bool) -> None:
    assert choose_device(EngineConfig(dtype="int8")) == "cpu"
    with pytest.raises(Misconfigured, match="int8" if has_gpu else "no NVIDIA GPU"):
        choose_device(EngineConfig(device="cuda", dtype="int8"))


def test_a_gpu_that_is_asked_for_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "has_gpu", lambda: False)
    with pytest.raises(Misconfigured, match="no NVIDIA GPU"):
        choose_device(EngineConfig(device="cuda"))


@pytest.mark.parametrize("driver", [False, True])
def test_torch_is_asked_for_a_gpu_only_where_its_driver_is(monkeypatch: pytest.MonkeyPatch, driver: bool) -> None:
    def load(name: str) -> None:
        if not driver:
            raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", load)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert backend.has_gpu() == driver


def test_what_is_left_open_is_chosen_by_the_device_and_the_rest_is_kept() -> None:
    config = EngineConfig(block_size=32)
    assert for_device(config, "cpu").block_size == for_device(config, "cuda").block_size == 32
    assert for_device(config, "cpu").max_sequences < for_device(config, "cuda").max_sequences
    assert for_device(config, "cpu").kv_memory_bytes == 1 << 30
    assert for_device(config, "cuda").kv_memory_bytes == 0


@pytest.mark.parametrize("setting", ["dtype", "kv_dtype"])
def test_fp8_needs_a_gpu_that_has_it(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    config = EngineConfig(**{setting: "fp8"})  # type: ignore[arg-type]
    monkeypatch.setattr(backend, "has_gpu", lambda: False)
    for device in ("auto", "cpu"):
        with pytest.raises(Misconfigured, match=f"engine.{setting} = fp8 runs on an NVIDIA GPU alone"):
            choose_device(replace(config, device=device))
    monkeypatch.setattr(backend, "has_gpu", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (8, 0))
    with pytest.raises(Misconfigured, match=f"engine.{setting} = fp8 needs a GPU of the Hopper generation"):
        choose_device(config)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    assert choose_device(config) == "cuda"


def test_a_model_in_fp8_runs_so_by_itself_where_the_gpu_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = replace(read_architecture(make_tiny_llama(tmp_path)), is_fp8=True)
    config = EngineConfig(device="cuda")
    monkeypatch.setattr(backend, "has_fp8", lambda: True)
    assert choose_dtype(config, shape).dtype == "fp8"
    assert choose_dtype(replace(config, dtype="bfloat16"), shape).dtype == "bfloat16"
    assert choose_dtype(config, replace(shape, is_fp8=False)).dtype == "bfloat16"
    assert choose_dtype(replace(config, tensor_parallel=2), shape).dtype == "bfloat16"  # too narrow for two
    assert choose_dtype(config, replace(shape, intermediate_size=72)).dtype == "bfloat16"
    monkeypatch.setattr(backend, "has_fp8", lambda: False)
    assert choose_dtype(config, shape).dtype == "bfloat16"


def test_fp8_that_was_asked_for_is_refused_where_it_cannot_run(tmp_path: Path) -> None:
    shape = read_architecture(make_tiny_llama(tmp_path))
    config = EngineConfig(device="cuda", dtype="fp8")
    assert choose_dtype(config, shape).dtype == "fp8"
    with pytest.raises(Misconfigured, match="multiples of 16, and this model has 48, 40, 24, 8 on each rank"):
        choose_dtype(replace(config, tensor_parallel=2), shape)
    wide = replace(shape, intermediate_size=96, head_dim=32)
    assert choose_dtype(replace(config, tensor_parallel=2), wide).dtype == "fp8"
    with pytest.raises(Misconfigured, match="multiples of 16, and this model has 48, 72"):
        choose_dtype(config, replace(shape, intermediate_size=72))
