"""Where coding agents come from: a tarball of a pinned digest, fetched once; their tests skip where it is not there."""

import base64
import hashlib
import io
import platform
import sys
import tarfile
from pathlib import Path

import msgspec
import pytest

from tests.conformance import binaries, clients

TARBALL = "some-agent/-/some-agent-1.0.tgz"
HERE = f"{sys.platform}-{binaries.machine(platform.machine())}"


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A registry in a folder that has one package; its lock is for this machine."""
    path = tmp_path / "registry" / TARBALL
    path.parent.mkdir(parents=True)
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("package/agent")
        member.mode, member.size = 0o755, 2
        archive.addfile(member, io.BytesIO(b"hi"))
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", (tmp_path / "registry").as_uri())
    monkeypatch.setattr(clients, "ENVIRONMENTS", tmp_path / "cache")
    monkeypatch.delenv("REQUIRE_SERVERS", raising=False)
    lock(monkeypatch, tmp_path, path.read_bytes())
    return path


def lock(monkeypatch: pytest.MonkeyPatch, folder: Path, tarball: bytes, here: str = HERE) -> None:
    digest = base64.b64encode(hashlib.sha512(tarball).digest()).decode()
    pinned = {here: {"tarball": TARBALL, "sha512": digest, "program": "package/agent"}}
    (folder / "lock.json").write_bytes(msgspec.json.encode({"agent": pinned}))
    monkeypatch.setattr(binaries, "LOCK", folder / "lock.json")


def test_a_program_is_fetched_once(registry: Path) -> None:
    program = binaries.require("agent")
    assert program.read_text() == "hi"
    assert program.stat().st_mode & 0o100
    registry.unlink()
    assert binaries.require("agent") == program


def test_a_program_that_cannot_be_fetched_skips_its_tests_with_the_reason(
    registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.unlink()
    with pytest.raises(pytest.skip.Exception, match=r"agent is not there.*cannot be fetched"):
        binaries.require("agent")
    monkeypatch.setenv("REQUIRE_SERVERS", "1")
    with pytest.raises(pytest.fail.Exception, match=r"agent is not there.*cannot be fetched"):
        binaries.require("agent")


def test_a_program_of_other_machines_skips_its_tests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lock(monkeypatch, tmp_path, b"", here="plan9-vax")
    with pytest.raises(pytest.skip.Exception, match=f"no agent is pinned for {HERE}"):
        binaries.require("agent")


def test_another_file_than_the_pinned_one_is_never_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lock(monkeypatch, tmp_path, b"another")
    with pytest.raises(AssertionError, match="the registry serves another file"):
        binaries.require("agent")
