"""Fails when a Markdown file links to a file or heading of this repository that is not there. Knows no web."""

import re
import sys
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


def pages() -> list[Path]:
    """The pages of this repository; what lies in hidden folders was made or fetched by others."""
    return sorted(path for path in ROOT.rglob("*.md") if not _is_foreign(path.relative_to(ROOT)))


def _is_foreign(path: Path) -> bool:
    return "node_modules" in path.parts or any(part.startswith(".") for part in path.parts[:-1])


def anchors(path: Path) -> set[str]:
    """The headings as GitHub names them."""
    headings = HEADING.findall(FENCE.sub("", path.read_text("utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def broken(path: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    found = []
    for match in LINK.finditer(FENCE.sub("", path.read_text("utf-8"))):
        target = unquote(match[1] or match[2])
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name) if name else path
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            found.append(f"{path.relative_to(ROOT)}: {target} is not there")
    return found


def main() -> int:
    problems = [problem for path in pages() for problem in broken(path)]
    print("\n".join(problems), end="\n" if problems else "", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
