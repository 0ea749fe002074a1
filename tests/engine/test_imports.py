"""What an engine by itself needs: on a machine for GPUs there may be nothing but torch and its like."""

import subprocess
import sys
from pathlib import Path

import pytest

from axon.engine.config import EngineConfig
from axon.engine.engine import Engine
from axon.engine.native import library
from axon.engine.native.build import NotBuilt
from tests.engine.builders import make_add, make_tiny_llama, run_to_end

PROGRAM = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"msgspec", "pydantic", "fastapi", "structlog", "redis", "sqlalchemy", "gguf"}:
            raise ImportError(name + " is not installed")

sys.meta_path.insert(0, Absent())
import axon.engine.engine
"""


def test_an_engine_is_imported_without_the_servers_packages() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


WITHOUT_TORCH = """
import sys
from pathlib import Path

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch", "safetensors", "triton"}:
            raise ImportError(name + " is not imported by an int8 engine: it would take longer than all the rest")

sys.meta_path.insert(0, Absent())
from axon.engine.config import EngineConfig
from axon.domain.sampling import Sampling
from axon.engine.engine import Engine
from axon.engine.protocol.messages import Add

engine = Engine(EngineConfig(threads=1, kv_memory_bytes=2 << 20), Path(sys.argv[1]))
sampling = Sampling(max_tokens=5, temperature=0.0, ignore_eos=True)
engine.add(Add(id="a", prompt_ids=[1, 2, 3, 4, 5, 6], sampling=sampling, seed=0))
tokens = []
while engine.has_work:
    tokens += [each.token for each in engine.step().emitted]
print(tokens)
"""


def test_an_int8_engine_whose_weights_are_packed_starts_without_torch(tmp_path: Path) -> None:
    try:
        library.load()
    except NotBuilt as error:
        pytest.skip(f"no native kernels here: {error}")
    folder = make_tiny_llama(tmp_path, head_dim=16)
    engine = Engine(EngineConfig(threads=1, kv_memory_bytes=2 << 20), folder)
    expected = run_to_end(engine, [make_add(prompt=6, max_tokens=5, ignore_eos=True)])["a"]
    command = [sys.executable, "-c", WITHOUT_TORCH, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(expected)
