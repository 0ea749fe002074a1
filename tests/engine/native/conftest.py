"""One native library and a few tiny models for the whole session; without a compiler these tests skip."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from axon.engine.native import library
from axon.engine.native.build import NotBuilt
from tests.engine.builders import make_tiny_llama
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


@pytest.fixture(params=["folder", "wide_folder"])
def tiny(request: pytest.FixtureRequest) -> Iterator[Tiny]:
    tiny = Tiny(request.getfixturevalue(request.param), threads=2)
    yield tiny
    tiny.model.close()
