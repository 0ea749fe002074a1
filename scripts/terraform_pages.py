"""Writes the tables of variables and outputs into the README of every Terraform module and environment.

python scripts/terraform_pages.py [--check]

Above the tables a README says in a few sentences what the module makes; that part is written by hand.
"""

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
AWS = ROOT / "deploy" / "terraform" / "aws"
MARK = "<!-- The tables are written by scripts/terraform_pages.py from the files beside this one. -->"
_BLOCK = re.compile(r'^(variable|output) "(\w+)" \{\n(.*?)^\}', re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^  (\w+) += (.*(?:\n(?:    .*|  [})\]].*))*)", re.MULTILINE)


@dataclass(frozen=True)
class Declared:
    """A variable or an output."""

    kind: str
    name: str
    description: str
    type: str = ""
    default: str | None = None


def declared(text: str) -> list[Declared]:
    """The variables and outputs in the text of a file."""
    found = []
    for kind, name, body in _BLOCK.findall(text):
        fields = dict(_FIELD.findall(body))
        description = fields.get("description", '""').strip().strip('"').replace('\\"', '"')
        found.append(Declared(kind, name, description, _short(fields.get("type", "")), fields.get("default")))
    return found


def _short(text: str) -> str:
    """A type or value that fits into a cell."""
    one_line = re.sub(r"\s+", " ", text).strip()
    return one_line if len(one_line) <= 30 else re.split(r"[({\[]", one_line)[0] + "(…)"


def page(folder: Path) -> str:
    """The README as it should be."""
    path = folder / "README.md"
    above = (path.read_text() if path.exists() else f"# {folder.name}\n").partition(MARK)[0].rstrip()
    parts = [above, "", MARK, "", "## Variables", "", "| name | type | default | meaning |", "|---|---|---|---|"]
    for each in declared((folder / "variables.tf").read_text()):
        default = "required" if each.default is None else f"`{_short(each.default)}`"
        parts.append(f"| `{each.name}` | `{each.type}` | {default} | {_cell(each.description)} |")
    parts += ["", "## Outputs", "", "| name | meaning |", "|---|---|"]
    parts += [
        f"| `{each.name}` | {_cell(each.description)} |" for each in declared((folder / "outputs.tf").read_text())
    ]
    return "\n".join(parts) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def folders() -> list[Path]:
    """The modules and environments."""
    return sorted(path.parent for path in AWS.rglob("variables.tf"))


def outdated() -> list[Path]:
    """The folders whose README does not say what their files do."""
    return [
        each
        for each in folders()
        if not (each / "README.md").exists() or (each / "README.md").read_text() != page(each)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes the tables of the Terraform modules' pages.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is not up to date")
    arguments = parser.parse_args()
    wrong = outdated()
    if arguments.check:
        for each in wrong:
            print(f"{each.relative_to(ROOT)}/README.md is out of date: run scripts/terraform_pages.py", file=sys.stderr)
        return 1 if wrong else 0
    for each in wrong:
        (each / "README.md").write_text(page(each))
    return 0


if __name__ == "__main__":
    sys.exit(main())
