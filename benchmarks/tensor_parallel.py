"""What tensor parallelism says over the wire, and what it should give on GPUs that are not here. Measures nothing.

python -m benchmarks.tensor_parallel            Llama-3-70B and 8B over NVLink and EFA; one JSON line last

The assumptions and the formulas stand in benchmarks.measures.forecast.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from axon.engine.load.architecture import Architecture  # noqa: E402
from axon.engine.load.rope import Rope  # noqa: E402
from benchmarks.measures.forecast import EFA, NVLINK, Forecast, Wire, forecast, layer_bytes_per_token  # noqa: E402

LLAMA_8B = Architecture(
    vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_layers=32, num_heads=32, num_kv_heads=8,
    head_dim=128, rms_norm_eps=1e-5, rope=Rope(), tied_embedding=False, max_model_len=8192, eos_ids=frozenset(),
)  # fmt: skip
LLAMA_70B = Architecture(
    vocab_size=128256, hidden_size=8192, intermediate_size=28672, num_layers=80, num_heads=64, num_kv_heads=8,
    head_dim=128, rms_norm_eps=1e-5, rope=Rope(), tied_embedding=False, max_model_len=8192, eos_ids=frozenset(),
)  # fmt: skip
ROWS, CONTEXT = (1, 64), 1024


def table(name: str, architecture: Architecture, wires: list[Wire], sizes: list[int]) -> list[dict[str, Any]]:
    """Prints one line a split and returns them."""
    print(f"\n{name}, bfloat16, {CONTEXT} tokens behind each row; KB a rank sends for a token and layer")
    print(f"{'wire':8}{'ranks':>6}{'GB each':>9}{'KV tokens':>11}{'KB':>6}", end="")
    print("".join(f"{f'{rows} rows: tok/s':>17}{'ms':>7}{'waits':>7}" for rows in ROWS), f"{'prefill tok/s':>14}")
    made: list[dict[str, Any]] = []
    for wire in wires:
        for size in sizes:
            found = [forecast(architecture, size, wire, num_rows=rows, context=CONTEXT) for rows in ROWS]
            print(line(architecture, wire, size, found))
            made += [
                {"model": name, "wire": wire.name, "rows": rows, **asdict(each)}
                for rows, each in zip(ROWS, found, strict=True)
                if each
            ]
    return made


def line(architecture: Architecture, wire: Wire, size: int, found: list[Forecast | None]) -> str:
    first = found[0]
    if first is None:
        return f"{wire.name:8}{size:>6}  does not find room"
    sent = layer_bytes_per_token(architecture, 2, size) / 1024
    start = f"{wire.name:8}{size:>6}{first.weight_bytes / 1e9:>9.1f}{first.kv_tokens:>11,}{sent:>6.1f}"
    cells = [
        f"{each.tokens_per_s:>17,.0f}{1e3 * each.step_s:>7.2f}{each.sums_s / each.step_s:>7.0%}"
        if each
        else f"{'–':>31}"
        for each in found
    ]
    return start + "".join(cells) + f"{first.prefill_tokens_per_s:>15,.0f}"


def main() -> None:
    print(" ".join(["python", *sys.argv]))
    made = table("Llama-3-70B", LLAMA_70B, [NVLINK, EFA], [1, 2, 4, 8])
    made += table("Llama-3-8B", LLAMA_8B, [NVLINK], [1, 2, 4, 8])
    print(json.dumps({"benchmark": "tensor_parallel", "rows": made}))


if __name__ == "__main__":
    main()
