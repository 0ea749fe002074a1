"""What an engine by itself needs: on a machine for GPUs there may be nothing but torch and its like."""

import subprocess
import sys

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
