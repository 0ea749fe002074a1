"""Terraform over ``deploy/terraform/aws``, with a stand-in for the AWS provider: nothing is asked of any network."""

import os
import re
import subprocess
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.deploy.chart import contents, told_once
from tests.deploy.terraform import programs, provider, schema

ROOT = Path(__file__).resolve().parents[3] / "deploy" / "terraform" / "aws"
_RUN_S = 600.0
_QUICKER = {"GOGC": "off", "GODEBUG": "asyncpreemptoff=1"}
"""Under emulation, collecting garbage and interrupting threads takes a fifth of the time."""
_USED = re.compile(r'^(resource|data) "(aws_\w+)"', re.MULTILINE)


class Failed(Exception):
    """A test of Terraform's has failed; its text is what Terraform says."""


@dataclass(frozen=True)
class Workspace:
    """Runs Terraform; what it notes of a folder is kept apart from it."""

    command: tuple[str, ...]
    notes: Path
    environ: dict[str, str]

    def run(self, folder: Path, *arguments: str, notes: str = "") -> "subprocess.CompletedProcess[str]":
        """Runs Terraform in the folder to its end, whatever its exit code; ``notes`` names what it keeps meanwhile."""
        kept = {"TF_DATA_DIR": str(self.notes / (notes or "-".join(folder.parts[-2:])))}
        return subprocess.run(
            [*self.command, *arguments],
            cwd=folder,
            env={**self.environ, **kept},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_RUN_S,
            check=False,
        )

    def tested(self, folder: Path, tests: Sequence[str] = ()) -> str:
        """Runs the folder's tests, all or those in the named files; returns what Terraform says of them. If all pass,
        that is kept, and told again as long as neither files nor Terraform nor the stand-in change."""
        stand_in = [each for each in contents(Path(__file__).parent) if each[0].endswith((".py", ".c"))]
        given = (folder.name, list(tests), contents(ROOT), stand_in, programs.PINS)
        try:
            return told_once("terraform", given, lambda: self._test(folder, tests))
        except Failed as failed:
            return str(failed)

    def _test(self, folder: Path, tests: Sequence[str]) -> str:
        notes = "-".join([folder.name, *(Path(each).name for each in tests)])[:100]
        chosen = [f"-filter={each}" for each in tests]
        for arguments in (("init", "-backend=false", "-input=false", "-no-color"), ("test", "-no-color", *chosen)):
            done = self.run(folder, *arguments, notes=notes)
            if done.returncode != 0:
                raise Failed(done.stdout + done.stderr)
        return done.stdout + done.stderr


def used(files: list[Path]) -> set[tuple[str, str]]:
    """Kind and name of every resource and data source in the files."""
    return {each for path in files for each in _USED.findall(path.read_text())}


def schema_of(wanted: set[tuple[str, str]]) -> bytes:
    """The message in which the provider tells the schema of these."""
    blocks: dict[str, dict[str, schema.Block]] = {"resource": {}, "data": {}}
    with zipfile.ZipFile(programs.bindings()) as archive:
        for kind, name in sorted(wanted):
            blocks[kind][name] = schema.read(_code(archive, schema.folder_of(kind, name)))
        own = schema.read(_code(archive, schema.folder_of("provider", "aws")))
    return provider.schema_message(own, blocks["resource"], blocks["data"])


def _code(archive: zipfile.ZipFile, folder: str) -> str:
    names = [name for name in archive.namelist() if name.startswith(f"{folder}/")]
    if not names:
        raise KeyError(f"the AWS provider has no {folder}")
    return "\n".join(archive.read(name).decode() for name in sorted(names))


@contextmanager
def opened(folder: Path, files: list[Path]) -> Iterator[Workspace]:
    """A workspace whose provider knows what is used in the files; skips the test where Terraform cannot be had."""
    command = programs.or_skip("terraform")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "TF_"))}
    with provider.serving(schema_of(used(files)), folder) as reattach:
        environ = {**inherited, "CHECKPOINT_DISABLE": "1", "TF_REATTACH_PROVIDERS": reattach, **_QUICKER}
        yield Workspace(command, folder, environ)
