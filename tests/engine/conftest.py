"""One tiny model for the whole session."""

from pathlib import Path

import pytest

from tests.engine.builders import make_tiny_llama


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_llama(tmp_path_factory.mktemp("models") / "tiny")
