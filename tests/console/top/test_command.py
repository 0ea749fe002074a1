"""``axon top`` without a terminal: one picture as text or JSON, and errors that say what to do."""

import json

from tests.console.program import Axon
from tests.console.top.conftest import Watched


def test_once_prints_one_picture_as_text(axon: Axon, watched: Watched) -> None:
    ran = axon("top", "--once", *watched.flags)
    assert (ran.returncode, ran.stderr) == (0, "")
    lines = ran.stdout.splitlines()
    assert lines[0].startswith(f"axon top · {watched.server.url} · ")
    assert any(line.startswith("Fleet   1 gateway · 1 worker · 1 model (1 ready)") for line in lines)
    assert any(line.startswith("acme ") for line in lines)
    assert "\x1b" not in ran.stdout


def test_a_pipe_gets_one_picture_too_with_the_rows_that_pass(axon: Axon, watched: Watched) -> None:
    ran = axon("top", "--tenant", "glob", "--sort", "name", *watched.flags)
    assert ran.returncode == 0
    assert any(line.startswith("globex ") for line in ran.stdout.splitlines())
    assert "acme" not in ran.stdout


def test_json_has_the_look_and_its_rates(axon: Axon, watched: Watched) -> None:
    ran = axon("top", "--json", *watched.flags)
    assert ran.returncode == 0
    frame = json.loads(ran.stdout)
    assert (frame["object"], frame["overview"]["object"]) == ("top", "overview")
    assert [each["model"] for each in frame["overview"]["workers"]] == ["echo"]
    assert frame["rates"]["gateway"]["requests_per_s"] >= 0
    assert {"acme", "globex"} <= frame["rates"]["tenants"].keys()


def test_errors_say_what_to_do(axon: Axon, watched: Watched) -> None:
    url = watched.server.url
    for flags, word in (
        (("--url", "http://127.0.0.1:9", "--key", "k"), "No server answers at http://127.0.0.1:9"),
        (("--url", url, "--key", "nonsense"), "axon keys create"),
        (("--url", url, "--key", watched.server.key), "--scope admin"),
    ):
        ran = axon("top", "--once", *flags)
        assert (ran.returncode, word in ran.stderr) == (1, True), ran.stderr
        assert len(ran.stderr.splitlines()) == 1
