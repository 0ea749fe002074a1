"""What this machine can do at most: bytes read from memory and int8 products a second. Knows no model and no kernel."""

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from axon.engine.native.build import find_compiler

_SOURCE = Path(__file__).with_suffix(".cpp")
_TIMEOUT_S = 120


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The best of some rounds, of so many threads together."""

    threads: int
    memory_gb_s: float
    int8_gmac_s: dict[str, float]
    """Billions of products a second by the instruction that makes them."""

    def __str__(self) -> str:
        products = ", ".join(f"{name} {rate:,.0f}" for name, rate in self.int8_gmac_s.items())
        return f"ceilings of {self.threads} threads: memory {self.memory_gb_s:.1f} GB/s read, int8 GMAC/s {products}"


def measure(threads: int) -> Ceilings:
    """Builds and runs the program of ceilings.cpp, a few seconds; raises NotBuilt without a compiler."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "ceilings"
        command = (find_compiler(), "-O3", "-std=c++17", "-pthread", str(_SOURCE), "-o", str(program))
        subprocess.run(command, check=True, timeout=_TIMEOUT_S)
        printed = subprocess.run(
            (str(program), str(threads)), check=True, capture_output=True, text=True, timeout=_TIMEOUT_S
        )
    return Ceilings(**json.loads(printed.stdout))
