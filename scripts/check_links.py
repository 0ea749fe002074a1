"""Fails when a Markdown file links to a file or heading of this repository that is not there, and when no other page
leads to a page of docs/. Knows no web."""

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


def links(path: Path) -> list[tuple[str, Path, str]]:
    """The links of a page within this repository: as written, the file, and the heading."""
    found = []
    for match in LINK.finditer(FENCE.sub("", path.read_text("utf-8"))):
        target = unquote(match[1] or match[2])
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        found.append((target, (path.parent / name) if name else path, anchor))
    return found


def broken(path: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    found = []
    for target, file, anchor in links(path):
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            found.append(f"{path.relative_to(ROOT)}: {target} is not there")
    return found


def lonely(paths: list[Path]) -> list[str]:
    """The pages of docs/ that no other page leads to."""
    led_to = {file.resolve() for path in paths for _, file, _ in links(path) if file.resolve() != path}
    of_docs = [path for path in paths if (ROOT / "docs") in path.parents and path not in led_to]
    return [f"{path.relative_to(ROOT)}: no other page leads to it" for path in of_docs]


def main() -> int:
    problems = [*(problem for path in pages() for problem in broken(path)), *lonely(pages())]
    print("\n".join(problems), end="\n" if problems else "", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
