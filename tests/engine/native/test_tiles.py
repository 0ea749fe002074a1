"""The tiles of every instruction set compute the same bits for any number of rows, on an emulator if need be."""

import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from axon.engine.native import build, library
from axon.engine.native.packed_weights import quantise

PROGRAM = Path(__file__).with_name("tiles_program.cpp")
MACHINES = ("aarch64", "x86_64")
EMULATED = ("neon-i8mm", "avx2")
"""What QEMU emulates: no AVX-512 and no AMX."""
TIMEOUT_S = 120

Ints = npt.NDArray[np.int32]


def what_it_prints(name: str, folder: Path) -> list[str]:
    """What the tiles of an instruction set compute; skips where the machine can neither run nor emulate them."""
    machine, unit = unit_of(name)
    is_here = machine == platform.machine() and library.instruction_set(library.load(), name) is not None
    command = () if is_here else emulator(machine, name)
    program = str(folder / name)
    include = f"-I{Path(build.__file__).parent}"
    flags = (*build._FLAGS, *unit.flags, f"-DAXON_GROUP={build.GROUP_SIZE}", include)
    subprocess.run((compiler_for(machine), *flags, str(PROGRAM), "-o", program), check=True, timeout=TIMEOUT_S)
    ran = subprocess.run((*command, program), check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
    return ran.stdout.splitlines()


def unit_of(name: str) -> tuple[str, build._Unit]:
    """The kind of machine that has an instruction set, this one if both have it, and the set's first unit."""
    for machine in (platform.machine(), *MACHINES):
        for unit in build._units(machine):
            if unit.instruction_set == name:
                return machine, unit
    raise AssertionError(f"no machine has {name}")


def compiler_for(machine: str) -> str:
    """This machine's compiler, or Debian's cross compiler for another kind; skips without one."""
    if machine == platform.machine():
        return build.find_compiler()
    if found := shutil.which(f"{machine}-linux-gnu-g++"):
        return found
    pytest.skip(f"no compiler for {machine} is here")


def emulator(machine: str, name: str) -> tuple[str, ...]:
    for command in (f"qemu-{machine}", f"qemu-{machine}-static"):
        if name in EMULATED and shutil.which(command):
            libraries = () if machine == platform.machine() else ("-L", f"/usr/{machine}-linux-gnu")
            return (command, "-cpu", "max", *libraries)
    pytest.skip(f"{name} is not here, nor an emulator of it")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return what_it_prints("scalar", tmp_path_factory.mktemp("tiles"))


@pytest.mark.long("tiles")
@pytest.mark.parametrize("name", [each for each in library.INSTRUCTION_SETS if each != "scalar"])
def test_the_tiles_compute_what_plain_code_computes(name: str, expected: list[str], tmp_path: Path) -> None:
    printed = what_it_prints(name, tmp_path)
    kinds = 5 + 3
    assert len(printed) == kinds * 52, "products of 1 to 5 groups, dots, weighed values and products of floats"
    assert printed == expected


def zip_low(first: Ints, second: Ints) -> Ints:
    half = len(first) // 2
    return np.stack([first[:half], second[:half]], axis=1).reshape(len(first), *first.shape[1:])


def zip_high(first: Ints, second: Ints) -> Ints:
    half = len(first) // 2
    return np.stack([first[half:], second[half:]], axis=1).reshape(len(first), *first.shape[1:])


def smmla(rows: Ints, outputs: Ints) -> Ints:
    """Two vectors of 16 bytes as 2 x 8 matrices: the four products of their rows."""
    product: Ints = (rows.reshape(2, 8) @ outputs.reshape(2, 8).T).reshape(4)
    return product


def test_two_zipped_lines_of_a_panel_are_what_smmla_multiplies() -> None:
    random = np.random.default_rng(0)
    weight = random.normal(size=(16, build.GROUP_SIZE)).astype(np.float32)
    panel = quantise(weight, build.GROUP_SIZE)[0][0].astype(np.int32)  # [inputs / 4, 16, 4]
    rows = random.integers(-127, 128, (2, build.GROUP_SIZE)).astype(np.int32)
    for output in range(0, 16, 4):
        sums = np.zeros((2, 4), np.int32)
        for k in range(0, build.GROUP_SIZE, 8):
            early, late = (panel[line, output : output + 4] for line in (k // 4, k // 4 + 1))
            for half, zipped in enumerate((zip_low(early, late), zip_high(early, late))):
                sums[half] += smmla(rows[:, k : k + 8], zipped)
        pairs = sums.reshape(2, 2, 2)  # [outputs 0 and 1, or 2 and 3][row][output]
        unzipped = np.stack([zip_low(pairs[0], pairs[1]), zip_high(pairs[0], pairs[1])])
        plain = panel.transpose(1, 0, 2).reshape(16, -1)[output : output + 4]
        assert np.array_equal(unzipped.reshape(2, 4), rows @ plain.T)


@pytest.mark.parametrize("machine", [each for each in MACHINES if each != platform.machine()])
def test_the_encoders_of_another_kind_of_machine_compile_without_a_warning(machine: str) -> None:
    compiler = compiler_for(machine)
    units = [each for each in build._units(machine) if each.name.startswith("encoder_") and each.flags]
    common = (compiler, *build._FLAGS, "-Werror", "-fsyntax-only", f"-DAXON_GROUP={build.GROUP_SIZE}")
    build._run_all((*common, *each.flags, str(Path(build.__file__).parent / each.source)) for each in units)
