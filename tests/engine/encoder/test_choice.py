"""Which arithmetic an embedding model runs in."""

from pathlib import Path
from typing import Any

import pytest

from axon.engine.config import EngineConfig, for_device
from axon.engine.encoder import choice
from axon.engine.encoder.bert import BertEncoder
from axon.engine.encoder.native_bert import NativeBert
from axon.engine.native import library
from axon.engine.native.build import NotBuilt
from axon.errors import Misconfigured
from tests.engine.encoder.models import made

SIZES: dict[str, Any] = {"hidden_size": 64, "num_attention_heads": 4}


def test_the_native_kernels_are_taken_where_they_can_be_had(tmp_path: Path) -> None:
    config = for_device(EngineConfig(threads=1), "cpu")
    encoder = choice.open_encoder(config, made(tmp_path / "model", **SIZES))
    assert isinstance(encoder, NativeBert)
    assert encoder.kernel.startswith("encoder-float32-")


def test_a_shape_that_the_kernels_lack_runs_on_pytorch(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = for_device(EngineConfig(threads=1), "cpu")
    assert isinstance(choice.open_encoder(config, made(tmp_path / "model")), BertEncoder)
    assert "runs on PyTorch" in caplog.text


def test_without_kernels_int8_is_refused_and_float32_runs_on_pytorch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_built() -> None:
        raise NotBuilt("no compiler")

    monkeypatch.setattr(library, "load", not_built)
    folder = made(tmp_path / "model", **SIZES)
    assert isinstance(choice.open_encoder(for_device(EngineConfig(threads=1), "cpu"), folder), BertEncoder)
    with pytest.raises(Misconfigured, match="no compiler"):
        choice.open_encoder(for_device(EngineConfig(threads=1, dtype="int8"), "cpu"), folder)
