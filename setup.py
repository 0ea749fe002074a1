"""Wheels that carry the native kernels: ``AXON_WHEEL_NATIVE=1 pip wheel --no-deps .``, once for each kind of machine.

Without the variable the wheel is pure Python, and the first start of an engine builds them where a compiler is.
"""

import os
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

CARRIES_NATIVE = os.environ.get("AXON_WHEEL_NATIVE") == "1"
ROOT = Path(__file__).resolve().parent


class BuildWithKernels(build_py):
    """Copies the package, then builds the library into the copy."""

    def run(self) -> None:
        super().run()
        if CARRIES_NATIVE:
            sys.path.insert(0, str(ROOT / "src"))
            from axon.engine.native.build import build, file_name, find_compiler

            build(Path(self.build_lib).resolve() / "axon" / "engine" / "native" / file_name(), find_compiler())


class WheelOfOneMachine(bdist_wheel):
    """A wheel for any Python 3, but for one kind of machine."""

    def get_tag(self) -> tuple[str, str, str]:
        return ("py3", "none", super().get_tag()[2])


class NativeDistribution(Distribution):
    """Says that there is machine code inside."""

    def has_ext_modules(self) -> bool:
        return True


if CARRIES_NATIVE:
    setup(cmdclass={"build_py": BuildWithKernels, "bdist_wheel": WheelOfOneMachine}, distclass=NativeDistribution)
else:
    setup()
