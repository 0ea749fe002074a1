"""Says what a built wheel holds, and fails where it is not what a release may publish. Builds and installs nothing.

python scripts/check_wheel.py any|aarch64|x86_64 dist/axon_serving-….whl
"""

import fnmatch
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "axon"
sys.path.insert(0, str(ROOT / "src"))

from axon.engine.native.build import file_name, instruction_sets  # noqa: E402
from axon.engine.native.portable import check, platform_tag  # noqa: E402


def expected(package: Path = PACKAGE) -> set[str]:
    """The files of the package that every wheel must have: its modules, and what pyproject.toml names besides."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    patterns = ["*.py", *settings["tool"]["setuptools"]["package-data"]["axon"]]
    files = (path.relative_to(package).as_posix() for path in package.rglob("*") if path.is_file())
    return {f"axon/{name}" for name in files if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)}


def faults(kind: str, wheel: str, names: Sequence[str], wanted: set[str]) -> list[str]:
    """What is wrong with a wheel of these files."""
    tag = "any" if kind == "any" else platform_tag(kind)
    found = [] if wheel.endswith(f"-py3-none-{tag}.whl") else [f"its name does not end with py3-none-{tag}"]
    found += [f"{name} is missing" for name in sorted(wanted - set(names))]
    libraries = sorted(Path(name).name for name in names if name.endswith(".so"))
    carried = [] if kind == "any" else [file_name(kind)]
    if libraries != carried:
        found.append(f"it carries {libraries} where these sources have {carried}")
    strangers = [name for name in names if not name.startswith("axon/") and ".dist-info/" not in name]
    return found + [f"{name} is no part of the package" for name in strangers]


def main(kind: str, path: Path) -> int:
    """Prints what there is to say; the exit status."""
    with zipfile.ZipFile(path) as wheel, tempfile.TemporaryDirectory() as folder:
        names = [name for name in wheel.namelist() if not name.endswith("/")]
        found = faults(kind, path.name, names, expected())
        line = f"{path.name}: {len(names)} files, {path.stat().st_size / 1e6:.1f} MB"
        for name in (name for name in names if name.endswith(".so")):
            needs = check(Path(wheel.extract(name, folder)), instruction_sets(kind).values())
            line += f"; kernels {', '.join(instruction_sets(kind))}; asks for glibc {needs.glibc}"
    print(line)
    for each in found:
        print(f"  {path.name}: {each}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
