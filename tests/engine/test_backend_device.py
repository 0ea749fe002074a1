"""Where an engine runs, and what its settings leave to the device."""

import ctypes

import pytest
import torch

from axon.engine import backend
from axon.engine.backend import choose_device
from axon.engine.config import EngineConfig, for_device
from axon.errors import Misconfigured


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
