"""Packages are the same bytes each time, and a wheel's kernels load and choose by the processor. Needs no index."""

import json
import os
import platform
import sys
import zipfile
from pathlib import Path

import pytest

from axon.engine.native import build, library
from tests.packages.emulated import CHOICES, Emulated, own, require_emulator
from tests.packages.wheels import build_wheels, run

CHOSEN = """
import ctypes, json
from axon.engine.native import build
path = build.library()
choose = ctypes.CDLL(str(path)).axon_instruction_set
choose.restype, choose.argtypes = ctypes.c_char_p, [ctypes.c_char_p]
print(json.dumps({"path": str(path), "chosen": choose(b"").decode()}))
"""
# Without numpy, which takes an emulator ten times as long as all of this.


@pytest.fixture(scope="module")
def emulated() -> Emulated:
    """This machine's kind, asked for before a wheel is built for it."""
    require_emulator(platform.machine())
    return own(sys.executable)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with this tree's wheel alone in it; its kernels are those that other tests have built already."""
    try:
        build.library()
    except build.NotBuilt as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("wheel")
    (wheel,) = build_wheels(folder, platform.machine(), kernels=build.default_folder())
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder / "site")
    return folder / "site"


def chosen(site: Path, answer: str) -> str:
    """The instruction set of an answer, which comes from the wheel's own library."""
    told = json.loads(answer)
    assert Path(told["path"]).parent == site / "axon" / "engine" / "native"
    return str(told["chosen"])


@pytest.mark.long("packages")
def test_the_wheels_own_library_is_loaded_and_no_compiler_is_looked_for(installed: Path) -> None:
    answer = run([sys.executable, "-c", CHOSEN], cwd=installed, PYTHONPATH=str(installed), PATH="/nonexistent")
    assert chosen(installed, answer) == library.instruction_set(library.load())


@pytest.mark.long("processors")
@pytest.mark.parametrize("processor", CHOICES.get(platform.machine(), {}))
def test_an_older_processor_gets_the_kernels_that_it_can_run(
    emulated: Emulated, installed: Path, processor: str
) -> None:
    told = emulated.run(processor, CHOSEN, path=installed)
    assert chosen(installed, told) == CHOICES[platform.machine()][processor]


@pytest.mark.long("packages")
def test_the_same_commit_gives_the_same_source_archive_and_pure_wheel(tmp_path: Path) -> None:
    """Later, and by somebody whose new files nobody else may read."""
    first = build_wheels(tmp_path / "first", "sdist", "any")
    before = os.umask(0o077)
    try:
        again = build_wheels(tmp_path / "again", "sdist", "any")
    finally:
        os.umask(before)
    assert [path.name for path in first] == [path.name for path in again]
    assert len(first) == 2
    for one, other in zip(first, again, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name
