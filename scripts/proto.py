"""Generates the Python code of the .proto files: messages, their types, and stubs for clients.

python scripts/proto.py [--check]

With --check nothing is written, and what is out of date fails.
"""

import argparse
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

SOURCE = Path(__file__).resolve().parents[1] / "src"
PROTOS = ("axon/v1/axon.proto", "axon/oip/inference.proto")


def generated() -> dict[Path, str]:
    """What the compiler makes of the files, by the path of each file in the source."""
    include = str(files("grpc_tools") / "_proto")
    with tempfile.TemporaryDirectory() as folder:
        outputs = [f"--{each}={folder}" for each in ("python_out", "pyi_out", "grpc_python_out")]
        if code := protoc.main(["protoc", f"-I{SOURCE}", f"-I{include}", *outputs, *PROTOS]):
            sys.exit(code)
        return {SOURCE / path.relative_to(folder): path.read_text() for path in Path(folder).rglob("*.py*")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail if something is out of date")
    checks = parser.parse_args().check
    for path, text in sorted(generated().items()):
        if path.exists() and path.read_text() == text:
            continue
        if checks:
            sys.exit(f"{path} is out of date. Run `make proto`.")
        path.write_text(text)


if __name__ == "__main__":
    main()
