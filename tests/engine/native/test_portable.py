"""Whether a wheel may carry a library: what it asks of the system, against what a Linux with glibc 2.28 has."""

from dataclasses import replace
from pathlib import Path

import pytest

from axon.engine.native import build, portable

# As `readelf --wide --dynamic --version-info --symbols` writes it, cut to what is read.
TEXT = """\
 0x0000000000000001 (NEEDED)             Shared library: [libstdc++.so.6]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
  0x0010:   Name: GLIBC_2.14  Flags: none  Version: 6
  0x0020:   Name: GLIBC_2.2.5  Flags: none  Version: 2
  0x0030:   Name: GLIBCXX_3.4.22  Flags: none  Version: 8
   103: 0000000000003a10   512 FUNC    LOCAL  DEFAULT   12 _ZN4axon11step_scalarERKNS_5ModelERKNS_4StepEi
   104: 0000000000004a10   512 FUNC    LOCAL  DEFAULT   12 _ZN4axon9step_avx2ERKNS_5ModelERKNS_4StepEi
   105: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND memcpy@GLIBC_2.14 (6)
"""
NEEDS = portable.read(TEXT)


def test_the_libraries_versions_and_functions_are_read() -> None:
    assert NEEDS.libraries == ("libc.so.6", "libstdc++.so.6")
    assert NEEDS.versions == ("GLIBCXX_3.4.22", "GLIBC_2.14", "GLIBC_2.2.5")
    assert NEEDS.glibc == "2.14"  # 14 is newer than 2.5
    assert portable.objections(NEEDS, ["step_scalar", "step_avx2"]) == []


@pytest.mark.parametrize("version", ["GLIBC_2.29", "GLIBC_2.34", "GLIBCXX_3.4.30", "CXXABI_1.3.13", "ZLIB_1.2"])
def test_a_symbol_that_the_oldest_system_lacks_is_objected_to(version: str) -> None:
    (told,) = portable.objections(replace(NEEDS, versions=(*NEEDS.versions, version)))
    assert version in told
    assert "glibc 2.28" in told


def test_a_library_that_not_every_linux_has_is_objected_to() -> None:
    (told,) = portable.objections(replace(NEEDS, libraries=("libc.so.6", "libgomp.so.1")))
    assert "libgomp.so.1" in told


def test_an_instruction_set_that_the_compiler_did_not_know_is_objected_to() -> None:
    told = portable.objections(NEEDS, build.instruction_sets("x86_64").values())
    assert [each.split(":")[0] for each in told] == ["it lacks step_avx512", "it lacks step_amx"]


def test_what_is_no_library_is_refused_by_name(tmp_path: Path) -> None:
    (path := tmp_path / "kernel.so").write_text("no machine code")
    with pytest.raises(portable.NotPortable, match=r"kernel\.so is no shared library"):
        portable.check(path)


def test_every_instruction_set_of_an_architecture_has_a_symbol() -> None:
    assert build.instruction_sets("x86_64") == {
        "scalar": "step_scalar",
        "avx2": "step_avx2",
        "avx512-vnni": "step_avx512",
        "amx-int8": "step_amx",
    }
    assert set(build.instruction_sets("aarch64")) == {"scalar", "neon-dotprod", "neon-i8mm"}
