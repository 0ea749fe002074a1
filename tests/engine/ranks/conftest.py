from pathlib import Path

import pytest

from axon.engine.load.convert.gguf import convert_gguf, default_gguf, is_converted
from tests.engine.test_default_model import MODEL_DIR


@pytest.fixture(scope="session")
def default_model() -> Path:
    """The folder that other tests convert it into as well."""
    if not is_converted(default_gguf(), MODEL_DIR):
        convert_gguf(default_gguf(), MODEL_DIR)
    return MODEL_DIR
