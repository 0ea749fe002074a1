"""Prints what the changelog says about a version; fails if it says nothing. Publishes nothing.

python scripts/release_notes.py v1.2.3
"""

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).resolve().parents[1] / "CHANGELOG.md"
_SECTION = re.compile(
    r"^## \[(?P<version>[^\]]+)\](?: - (?P<date>\d{4}-\d\d-\d\d))?\n(?P<text>.*?)(?=^## |^\[|\Z)", re.M | re.S
)


def notes(changelog: str, version: str) -> str:
    """The text of a version's section; raises LookupError that says what to write."""
    for found in _SECTION.finditer(changelog):
        if found["version"] != version.removeprefix("v"):
            continue
        if found["date"] is None:
            raise LookupError(f"the section of {version} has no date: write `## [{found['version']}] - YYYY-MM-DD`")
        if not found["text"].strip():
            raise LookupError(f"the section of {version} is empty")
        return found["text"].strip() + "\n"
    raise LookupError(f"CHANGELOG.md has no section `## [{version.removeprefix('v')}] - YYYY-MM-DD`")


if __name__ == "__main__":
    try:
        print(notes(CHANGELOG.read_text("utf-8"), sys.argv[1]), end="")
    except LookupError as error:
        sys.exit(str(error))
