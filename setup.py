"""Wheels that carry the native kernels: ``scripts/build-wheels`` makes them, one for each kind of machine.

By hand it is ``AXON_WHEEL_NATIVE=1 pip wheel --no-deps .``. ``AXON_WHEEL_MACHINE`` (x86_64, aarch64) names another kind
than this machine's, for which a cross compiler is needed; ``AXON_WHEEL_KERNELS`` is a folder where built libraries are
kept and found again. Without the first variable the wheel is pure Python, and the first start of an engine builds the
kernels where a compiler is.
"""

import os
import platform
import shutil
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

CARRIES_NATIVE = os.environ.get("AXON_WHEEL_NATIVE") == "1"
MACHINE = os.environ.get("AXON_WHEEL_MACHINE") or platform.machine()
ROOT = Path(__file__).resolve().parent


class BuildWithKernels(build_py):
    """Copies the package, then puts the library into the copy."""

    def run(self) -> None:
        super().run()
        library = built_library()
        shutil.copy(library, Path(self.build_lib).resolve() / "axon" / "engine" / "native" / library.name)


class WheelOfOneMachine(bdist_wheel):
    """A wheel for any Python 3, but for one kind of machine."""

    def get_tag(self) -> tuple[str, str, str]:
        return ("py3", "none", platform_tag())


class NativeDistribution(Distribution):
    """Says that there is machine code inside."""

    def has_ext_modules(self) -> bool:
        return True


def built_library() -> Path:
    """The path of the kernels' library for the machine that the wheel is for; built unless it was before."""
    sys.path.insert(0, str(ROOT / "src"))
    from axon.engine.native.build import build, file_name, find_compiler

    folder = Path(os.environ.get("AXON_WHEEL_KERNELS") or ROOT / "build" / "kernels").resolve()
    if not (path := folder / file_name(MACHINE)).is_file():
        build(path, find_compiler(MACHINE), MACHINE)
    return path


def platform_tag() -> str:
    """``manylinux_…`` where the library keeps what that promises, else a tag for systems like this one."""
    library = built_library()
    from axon.engine.native.build import instruction_sets
    from axon.engine.native.portable import NotPortable, check
    from axon.engine.native.portable import platform_tag as portable_tag

    try:
        check(library, instruction_sets(MACHINE).values())
    except NotPortable as error:
        print(f"warning: {error}", file=sys.stderr)
        return f"linux_{MACHINE}"
    return portable_tag(MACHINE)


if CARRIES_NATIVE:
    setup(cmdclass={"build_py": BuildWithKernels, "bdist_wheel": WheelOfOneMachine}, distclass=NativeDistribution)
else:
    setup()
