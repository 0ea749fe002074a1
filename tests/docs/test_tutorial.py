"""The tutorial's commands, typed one after the other beside a server, do what the page says."""

import re
import subprocess
from pathlib import Path

from tests.docs.blocks import REPOSITORY, of_page
from tests.journeys.conftest import PATIENT
from tests.journeys.server import running
from tests.services.on_path import axon_on_path

PAGE = REPOSITORY / "docs" / "tutorial.md"


def test_every_command_of_the_tutorial_works(tmp_path: Path) -> None:
    start, *rest = (block.text for block in of_page("tutorial.md", PAGE.read_text()))
    assert start == "make serve"
    # Tokens come apart, as a model says them: five lines are the beginning of the answer alone.
    settings = {**PATIENT, "engine_kind": "echo", "engine_echo_step_s": 0.02}
    with running(tmp_path / "data", **settings) as server, axon_on_path() as path:
        typed = "\n".join(rest).replace("http://127.0.0.1:8000", server.url)
        typed = typed.replace("smollm2-135m-instruct", "echo").replace("~/.local/share/axon", str(server.data_dir))
        typed = typed.replace(". .venv/bin/activate", "")
        done = subprocess.run(
            ["sh", "-euc", typed],
            cwd=tmp_path,
            env={**server.environment, "PATH": path, "AXON_URL": server.url},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    asked = done.stdout.partition("chat.completion.chunk")[0]
    assert asked.count("What is the capital of France?") >= 2  # `axon chat`, and the answer that curl got
    assert "Count to twenty." in "".join(re.findall(r'"delta":{[^}]*"content":"([^"]*)"', done.stdout))
    assert done.stdout.count("data: [DONE]") == 1  # of the stream's rest; its beginning was cut
    assert "axk_" in done.stdout
    assert "default" in done.stdout.rpartition("axk_")[2]  # the line of the tenant that asked
