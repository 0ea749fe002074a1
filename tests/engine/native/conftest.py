"""One native library and a few tiny models for the whole session; without a compiler these tests skip."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from axon.engine.native import build, library
from axon.engine.native.build import NotBuilt
from tests.engine.builders import make_tiny_llama
from tests.engine.checkpoints import make_checkpoint
from tests.engine.native.builders import Tiny


@pytest.fixture(scope="session", autouse=True)
def built() -> None:
    try:
        library.load()
    except NotBuilt as error:
        pytest.skip(f"no native kernels here: {error}")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Heads of 16 in shares of 3, sizes that fill no group exactly."""
    return make_tiny_llama(
        tmp_path_factory.mktemp("native") / "tiny", head_dim=16, hidden_size=72, intermediate_size=100, vocab_size=270
    )


@pytest.fixture(scope="session")
def wide_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Heads whose output fills whole groups, and a head of its own."""
    return make_tiny_llama(
        tmp_path_factory.mktemp("native") / "wide",
        head_dim=64,
        hidden_size=128,
        intermediate_size=192,
        num_attention_heads=4,
        tie_word_embeddings=False,
    )


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three heads share keys and values, so that a few tokens of a prompt fill a wide tile of queries."""
    return make_tiny_llama(
        tmp_path_factory.mktemp("native") / "shared",
        head_dim=64,
        hidden_size=192,
        num_attention_heads=6,
        vocab_size=300,
    )


@pytest.fixture(scope="session")
def experts_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty experts, of which each token has three, and a layer without any."""
    return make_checkpoint(tmp_path_factory.mktemp("native") / "experts", "qwen3_moe", mlp_only_layers=[1])


@pytest.fixture(scope="session")
def windows_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Gemma 3: layers with a window of 40 tokens among others, and norms behind blocks."""
    return make_checkpoint(tmp_path_factory.mktemp("native") / "windows", "gemma3", sliding_window=40)


@pytest.fixture(params=["folder", "wide_folder", "shared_folder", "experts_folder", "windows_folder"])
def model_folder(request: pytest.FixtureRequest) -> Path:
    folder: Path = request.getfixturevalue(request.param)
    return folder


INSTRUCTION_SETS = sorted({each.instruction_set for each in build._units() if each.instruction_set})
"""Of this kind of machine; each has several units."""


@pytest.fixture(params=INSTRUCTION_SETS)
def instruction_set(request: pytest.FixtureRequest) -> str:
    """Every one of this architecture; one that this processor lacks is skipped."""
    name: str = request.param
    if library.instruction_set(library.load(), name) is None:
        pytest.skip(f"no {name} here")
    return name


@pytest.fixture
def tiny(model_folder: Path, instruction_set: str) -> Iterator[Tiny]:
    tiny = Tiny(model_folder, threads=2, instruction_set=instruction_set)
    yield tiny
    tiny.model.close()
