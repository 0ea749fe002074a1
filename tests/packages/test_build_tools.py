"""What builds wheels is pinned with hashes, and is what the source archive asks for. Installs nothing."""

import platform
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

from tests.deploy import images, stack
from tests.journeys.server import REPOSITORY

LOCK = REPOSITORY / "scripts" / "build-tools.lock"
SCRIPT = (REPOSITORY / "scripts" / "build-wheels").read_text("utf-8")
_PIN = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>[0-9.]+)( --hash=sha256:[0-9a-f]{64})+")


def pins() -> dict[str, Version]:
    lines = [line for line in LOCK.read_text("utf-8").splitlines() if not line.startswith("#")]
    found = [_PIN.fullmatch(line) for line in lines]
    assert all(found), "each line is a name, a version and its hashes"
    return {each["name"]: Version(each["version"]) for each in found if each}


def test_every_tool_that_the_project_asks_for_is_pinned_within_its_bounds() -> None:
    asked = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    locked = pins()
    for requirement in (*map(Requirement, asked), Requirement("build"), Requirement("auditwheel")):
        assert requirement.specifier.contains(locked[requirement.name]), requirement


def test_wheels_are_built_with_the_lock_alone() -> None:
    installs = re.findall(r"pip install(?:[^\n]*\\\n)*[^\n]*", SCRIPT)
    assert len(installs) == 1
    assert {"--require-hashes", "--requirement", '"$lock"'} <= set(installs[0].split())
    assert SCRIPT.count("-m build ") == SCRIPT.count("-m build --no-isolation "), "isolation would fetch others"


def test_images_build_their_wheel_with_the_lock_too() -> None:
    commands = images.read_stages(images.DOCKERFILE.read_text("utf-8"))["wheel"].all("RUN")
    assert "--require-hashes" in commands[0]
    assert "scripts/build-tools.lock" in commands[0]
    assert "--no-build-isolation" in commands[1]


def test_another_package_than_that_of_the_lock_is_refused(tmp_path: Path) -> None:
    """As the Compose schema's package is fetched: from a folder in which it has other bytes."""
    (tmp_path / "docker_compose-1.29.2-py2.py3-none-any.whl").write_bytes(b"forged")
    command = [*stack.download(str(tmp_path / "out")), "--no-index", "--find-links", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode != 0
    assert "HASHES" in ran.stderr or "hash" in ran.stderr


def test_without_a_cross_compiler_the_other_machines_wheel_is_left_out_with_a_sentence(tmp_path: Path) -> None:
    for name in ("bash", "dirname", "uname"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    command = [str(tmp_path / "bash"), str(REPOSITORY / "scripts" / "build-wheels"), "--list"]
    environ = {"PATH": str(tmp_path)}
    listed = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=True)
    other = "x86_64" if platform.machine() == "aarch64" else "aarch64"
    assert other not in listed.stdout.split()
    assert {"sdist", "any"} <= set(listed.stdout.split())
    package = f"g++-{other.replace('_', '-')}-linux-gnu"
    assert f"The wheel for {other} is left out: install Debian's {package} to build it too.\n" in listed.stderr
    compiler = tmp_path / f"{other}-linux-gnu-g++"
    compiler.symlink_to(str(shutil.which("uname")))
    again = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=True)
    assert other in again.stdout.split()
    compiler.unlink()
    named = subprocess.run([*command, other], env=environ, capture_output=True, text=True, timeout=60, check=True)
    assert (named.stdout, named.stderr) == (f"{other}\n", ""), "one that is named is never left out"
