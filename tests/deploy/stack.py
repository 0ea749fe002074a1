"""The compose stack as it is read: merged, with its variables filled in. Starts nothing."""

import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.journeys.server import REPOSITORY

FOLDER = REPOSITORY / "deploy" / "compose"
FILE, GPU = FOLDER / "compose.yaml", FOLDER / "gpu.yaml"
_VARIABLE = re.compile(r"\$\{([A-Z_]+)(?:(:?[-?])([^}]*))?\}")
# The last release of docker-compose that was written in Python carries the Compose specification's JSON schema.
_SCHEMA_PACKAGE = "docker-compose==1.29.2"
_SCHEMA = REPOSITORY / ".cache" / "deploy-tools" / "compose-spec.json"


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
    if not _SCHEMA.exists():
        folder = _SCHEMA.parent / "docker-compose"
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--dest",
            str(folder),
            _SCHEMA_PACKAGE,
        ]
        if subprocess.run(command, capture_output=True).returncode:
            return None
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            _SCHEMA.write_bytes(archive.read("compose/config/compose_spec.json"))
    loaded: dict[str, Any] = json.loads(_SCHEMA.read_text("utf-8"))
    return loaded
