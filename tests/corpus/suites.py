"""JSON schemas of others, taken from their packages: the public test suite of JSON Schema, and models of pydantic's.

Nothing of them is kept in this repository. They are gathered once for each version into the user's cache folder. A
schema of the suite comes with instances, each with whether it is valid.
"""

import fcntl
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import BaseModel

SUITE = "jsonschema==4.26.0"
"""Its source package carries the JSON-Schema-Test-Suite; its wheel does not."""
DRAFTS = ("draft2020-12", "draft7")
MODELS = ("openai.types.chat", "openai.types.fine_tuning")
"""Packages whose pydantic models are taken, each with the schema that pydantic writes."""
_FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "axon" / "schemas"
_FORM = 1
"""Number of the cached file's form."""
_DOWNLOAD_S = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One schema of a corpus."""

    name: str
    schema: dict[str, Any]
    draft: str = "draft2020-12"
    """Whose rules hold if the schema does not say so itself."""
    instances: list[tuple[str, bool]] = field(default_factory=list)
    """Compact JSON, and whether it is valid."""


def gathered() -> list[Case]:
    """The schemas of every suite, without duplicates."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    made_of = f"{_FORM}-{SUITE.replace('==', '-')}-openai-{version('openai')}"
    path = _FOLDER / f"{made_of}.json"
    with (_FOLDER / f"{made_of}.lock").open("w") as lock:  # of several test processes one gathers, the others wait
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            cases = list({json.dumps(case.schema, sort_keys=True): case for case in (*_suite(), *_models())}.values())
            made = path.with_suffix(".new")
            made.write_text(json.dumps([asdict(case) for case in cases]))
            made.rename(path)
    return [
        Case(**{**each, "instances": [(text, valid) for text, valid in each["instances"]]})
        for each in json.loads(path.read_text())
    ]


def _suite() -> Iterator[Case]:
    with tempfile.TemporaryDirectory() as folder:
        quietly = ("--quiet", "--disable-pip-version-check")
        pip = [sys.executable, "-m", "pip", "download", *quietly, "--no-deps", "-d", folder]
        pip += ["--no-binary", SUITE.partition("==")[0]]  # what its source package is built with may come as wheels
        subprocess.run([*pip, SUITE], check=True, timeout=_DOWNLOAD_S)
        [source] = Path(folder).glob("*.tar.gz")
        with tarfile.open(source) as archive:
            for member in sorted(archive.getmembers(), key=lambda each: each.name):
                draft, _, name = member.name.partition("/json/tests/")[2].partition("/")
                file = archive.extractfile(member) if draft in DRAFTS and name.endswith(".json") else None
                if file is not None:
                    yield from _of_file(draft, name.removesuffix(".json"), json.load(file))


def _of_file(draft: str, name: str, groups: list[dict[str, Any]]) -> Iterator[Case]:
    for group in groups:
        if isinstance(group["schema"], dict):
            yield Case(
                name=f"{draft} {name}: {group['description']}",
                schema=group["schema"],
                draft=draft,
                instances=[(_compact(test["data"]), test["valid"]) for test in group["tests"]],
            )


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _models() -> Iterator[Case]:
    for package in MODELS:
        for info in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            for name, kind in vars(importlib.import_module(info.name)).items():
                if isinstance(kind, type) and issubclass(kind, BaseModel) and kind.__module__ == info.name:
                    yield Case(name=f"{info.name}.{name}", schema=kind.model_json_schema())
