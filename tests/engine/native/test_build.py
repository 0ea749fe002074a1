"""Where the kernels' library comes from: a wheel, the cache, a compiler; and what is said where none of them has it."""

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from axon.engine.native import build
from tests.services.process import wait_for


def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)


def test_without_a_compiler_the_error_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_compiler(monkeypatch)
    with pytest.raises(build.NotBuilt, match=r"need a C\+\+ compiler"):
        build.library(tmp_path)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_library_of_another_kind_of_machine_has_its_own_name_and_compiler(
    machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {"x86_64": "aarch64", "aarch64": "x86_64"}[machine]
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    assert build.file_name(machine).startswith(f"kernel-{machine}-")
    assert build.file_name(other) not in (build.file_name(machine), build.file_name(machine).replace(machine, other))
    assert build.find_compiler(machine) == build.find_compiler() == "/bin/g++"
    assert build.find_compiler(other) == f"/bin/{other}-linux-gnu-g++"
    no_compiler(monkeypatch)
    with pytest.raises(build.NotBuilt, match=rf"package is g\+\+-{other.replace('_', '-')}-linux-gnu"):
        build.find_compiler(other)


def test_a_failing_compiler_is_told_with_its_words(tmp_path: Path) -> None:
    compiler = tmp_path / "broken"
    compiler.write_text("#!/bin/sh\necho no such flag\nexit 1\n")
    compiler.chmod(0o755)
    with pytest.raises(build.NotBuilt, match="no such flag"):
        build.build(tmp_path / "out.so", str(compiler))
    assert not (tmp_path / "out.so").exists()


@pytest.mark.parametrize(("machine", "flag"), [("x86_64", "mamx"), ("aarch64", "i8mm")])
def test_a_compiler_too_old_for_an_instruction_set_builds_the_others(tmp_path: Path, machine: str, flag: str) -> None:
    told, compiler = tmp_path / "told", tmp_path / "old"
    compiler.write_text(
        f'#!/bin/sh\ncase "$*" in *{flag}*) exit 1;; esac\necho "$*" >> {told}\n'
        'while [ $# -gt 1 ]; do [ "$1" = -o ] && : > "$2"; shift; done\n'
    )
    compiler.chmod(0o755)
    build.build(tmp_path / "out.so", str(compiler), machine)
    commands = told.read_text().splitlines()
    assert (tmp_path / "out.so").exists()
    left_out = [unit for unit in build._units(machine) if any(flag in each for each in unit.flags)]
    assert len(left_out) == 2  # a decoder's and an encoder's
    assert len([command for command in commands if " -c " in command]) == len(build._units(machine)) - len(left_out)
    assert "AXON_HAS" not in told.read_text()


def test_what_was_built_once_needs_no_compiler_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / build.file_name()).write_bytes(b"built")
    no_compiler(monkeypatch)
    monkeypatch.setattr(build, "_FOLDER", tmp_path / "sources")
    assert build.library(tmp_path) == tmp_path / build.file_name()


def test_a_wheels_library_is_taken_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped, cache = tmp_path / "wheel", tmp_path / "cache"
    shutil.copytree(Path(build.__file__).parent, shipped, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for folder in (shipped, cache):
        folder.mkdir(exist_ok=True)
        (folder / build.file_name()).write_bytes(b"built")
    no_compiler(monkeypatch)
    monkeypatch.setattr(build, "_FOLDER", shipped)
    assert build.library(cache) == shipped / build.file_name()


def test_the_first_build_is_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(build, "find_compiler", lambda: "c++")
    monkeypatch.setattr(build, "build", lambda target, compiler: target.write_bytes(b"built"))
    assert build.library(tmp_path).is_file()
    assert "building the native kernels (once" in caplog.text


def test_engines_that_start_together_build_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end = [], threading.Event()

    def build_slowly(target: Path, compiler: str) -> None:
        begun.append(target)
        assert may_end.wait(60)
        target.write_bytes(b"built")

    monkeypatch.setattr(build, "find_compiler", lambda: "c++")
    monkeypatch.setattr(build, "build", build_slowly)
    with ThreadPoolExecutor(4) as threads:
        paths = [threads.submit(build.library, tmp_path) for _ in range(4)]
        wait_for(lambda: bool(begun), "one builds")
        may_end.set()
        assert {path.result(60) for path in paths} == {tmp_path / build.file_name()}
    assert len(begun) == 1


def test_a_build_that_never_ends_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_TIMEOUT_S", 0)
    monkeypatch.setattr(build, "find_compiler", lambda: "c++")
    with build._alone(tmp_path / build.file_name()), pytest.raises(build.NotBuilt, match="another process"):
        build.library(tmp_path)
