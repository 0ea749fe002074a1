"""Which arithmetic a model runs in when nobody has chosen one, and what is said when it is the slow one."""

from dataclasses import replace
from pathlib import Path

import pytest

from axon.engine.config import EngineConfig
from axon.engine.engine import Engine
from axon.engine.native import library
from axon.engine.native.build import NotBuilt
from axon.errors import Misconfigured
from tests.engine.builders import make_add, make_tiny_llama, run_to_end

CONFIG = EngineConfig(threads=1, kv_memory_bytes=2 << 20)


@pytest.fixture
def no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(folder: Path | None = None) -> None:
        raise NotBuilt("the native kernels need a C++ compiler")

    monkeypatch.setattr(library, "load", load)


@pytest.fixture
def kernels() -> None:
    try:
        library.load()
    except NotBuilt as error:
        pytest.skip(f"no native kernels here: {error}")


@pytest.mark.usefixtures("kernels")
def test_a_model_runs_in_int8_by_default(tmp_path: Path) -> None:
    engine = Engine(CONFIG, make_tiny_llama(tmp_path, head_dim=16))
    assert engine.ready().kernel.startswith("int8-")
    assert len(run_to_end(engine, [make_add(prompt=6, max_tokens=5, ignore_eos=True)])["a"]) == 5


@pytest.mark.usefixtures("no_kernels")
def test_without_kernels_it_runs_in_float32_and_the_log_says_why(
    tiny_llama: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Engine(CONFIG, tiny_llama)
    assert engine.ready().kernel == "torch-float32"
    assert "runs in float32" in caplog.text
    assert "need a C++ compiler" in caplog.text
    assert len(run_to_end(engine, [make_add(prompt=6, max_tokens=5, ignore_eos=True)])["a"]) == 5


def test_blocks_of_another_size_run_in_float32_and_the_log_says_why(
    tiny_llama: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert Engine(replace(CONFIG, block_size=4), tiny_llama).ready().kernel == "torch-float32"
    assert "engine.block_size = 16" in caplog.text


@pytest.mark.usefixtures("no_kernels")
def test_int8_that_was_asked_for_is_not_replaced(tiny_llama: Path) -> None:
    with pytest.raises(Misconfigured, match="C\\+\\+ compiler"):
        Engine(replace(CONFIG, dtype="int8"), tiny_llama)
