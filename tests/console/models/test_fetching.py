"""``axon models add`` as a user types it."""

import io
import json
import os
import subprocess
from pathlib import Path

import pytest
from rich.console import Console

from axon.console.models.fetching import FetchProgress
from axon.weights.progress import Progress
from tests.services import warm
from tests.weights.models import make_model
from tests.weights.object_server import COMMIT, Files, hub_server, s3_server


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    make_model(folder)
    return folder


def axon(tmp_path: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("AXON_", "AWS_", "HF_"))}
    command = ["models", "add", *arguments, "--data-dir", str(tmp_path / "data")]
    return warm.run(
        command, environ=plain | {"HF_HOME": str(tmp_path / "hf")} | environ, folder=tmp_path, timeout_s=120
    )


def test_a_folder_is_added_with_what_was_found_in_it(tiny: Path, tmp_path: Path) -> None:
    shown = axon(tmp_path, "tiny", str(tiny), "--label", "v1")
    assert shown.returncode == 0, shown.stderr
    assert "tiny@v1" in shown.stdout
    assert "512 tokens" in shown.stdout
    assert "Fetching" in shown.stderr
    assert "To run it: axon deployments create NAME --model tiny --version v1" in shown.stdout
    facts = json.loads(axon(tmp_path, "tiny", str(tiny), "--label", "v1", "--json").stdout)
    assert facts["id"] == "tiny@v1"
    assert facts["digest"] in shown.stdout
    assert Path(facts["folder"]) == tmp_path / "data" / "models" / "by-digest" / facts["digest"]


def test_a_hub_and_a_bucket_of_the_environment_give_the_same_version(tiny: Path, tmp_path: Path) -> None:
    content = {path.name: path.read_bytes() for path in tiny.iterdir()}
    with hub_server(Files({f"maker/tiny/{name}": data for name, data in content.items()})) as hub:
        from_hub = json.loads(axon(tmp_path, "tiny", "hf://maker/tiny", "--json", HF_ENDPOINT=hub).stdout)
    with s3_server(Files({f"models/tiny/{name}": data for name, data in content.items()})) as s3:
        keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_ENDPOINT_URL": s3}
        from_bucket = json.loads(axon(tmp_path, "tiny", "s3://models/tiny", "--json", **keys).stdout)
    assert from_hub["digest"] == from_bucket["digest"]
    assert from_hub["source_revision"] == COMMIT
    assert from_bucket["source_revision"] == ""


@pytest.mark.parametrize(
    ("source", "code", "said"),
    [
        ("gs://bucket/x", 2, "gs:// is no source that Axon knows"),
        ("/nowhere/at/all", 2, "There is no /nowhere/at/all on this machine"),
        ("hf://maker/tiny", 1, "cannot be reached"),
    ],
)
def test_what_cannot_be_added_is_one_line_that_says_why(tmp_path: Path, source: str, code: int, said: str) -> None:
    shown = axon(tmp_path, "tiny", source, HF_ENDPOINT="http://127.0.0.1:9")
    assert shown.returncode == code
    assert said in shown.stderr
    assert len([line for line in shown.stderr.splitlines() if line.startswith("axon: ")]) == 1
    assert "Traceback" not in shown.stderr


def test_a_terminal_shows_a_bar_with_rate_and_time_left() -> None:
    out = io.StringIO()
    shown = FetchProgress(Console(file=out, force_terminal=True, width=140))
    for stage in ("waiting", "fetching", "checking"):
        shown.update(Progress(stage=stage, done_bytes=0, total_bytes=10_000_000))
        shown.update(Progress(stage=stage, done_bytes=5_000_000, total_bytes=10_000_000, rate=1e6))
    shown.close()
    text = out.getvalue()
    assert "Another process fetches it" in text or "Checking digests" in text
    assert "5.0/10.0 MB" in text


def test_elsewhere_each_tenth_is_a_line_with_rate_and_time_left() -> None:
    out = io.StringIO()
    shown = FetchProgress(Console(file=out, force_terminal=False, width=140))
    for done in range(0, 10_000_001, 100_000):
        shown.update(Progress(stage="fetching", done_bytes=done, total_bytes=10_000_000, rate=1e6))
    lines = out.getvalue().splitlines()
    assert len(lines) == 11
    assert lines[5] == "axon: Fetching: 5.0 of 10.0 MB, 1.0 MB/s, 5 s left"
