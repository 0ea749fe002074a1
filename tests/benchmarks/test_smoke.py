"""Each benchmark at its smallest, as a user starts it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]


def run(module: str) -> tuple[list[str], dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", module, "--smoke"],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return lines, json.loads(lines[-1])


def test_the_comparison_prints_its_command_a_table_and_a_json_line() -> None:
    lines, result = run("benchmarks.cpu")
    assert lines[0] == "python -m benchmarks.cpu --smoke"
    assert any(line.startswith("| 2 | axon |") for line in lines)
    assert result["peers"] == ["echo-peer"]
    assert result["ratio_to_best_peer"].keys() == {"2"}
    assert result["engines"]["axon"]["streams"]["2"]["tokens_per_s"] > 0


def test_the_engines_benchmark_measures_every_claim() -> None:
    lines, result = run("benchmarks.engine")
    assert lines[0] == "python -m benchmarks.engine --smoke"
    parts = {row.partition(":")[0] for row in result["figures"]}
    assert parts == {"kv_cache", "batching", "conversation", "kv_memory", "long_prompt"}
    assert result["figures"]["batching: continuous against static"]["bound_of_these_lengths"] > 1
