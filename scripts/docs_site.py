"""What mkdocs needs to be told to make a site of docs/, which is written for a repository's viewer.

A link to a file outside docs/ leads to a copy of it as text within the site, one to a folder to a list of its files. A
list is indented as far as mkdocs wants it. ``runbooks/*`` in the navigation stands for all pages of the folder.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from posixpath import normpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
COPIES = "source"
"""The folder of the site with copies of files outside docs/."""
_LINK = re.compile(r"(\[[^\]]*\])\(((?:\.\./)+[^)\s#]*)(#[^)\s]*)?\)")
_FENCE = re.compile(r"^ *```")
_MARKER = re.compile(r"^([-*]|\d+\.) +")
_INDENT = 4


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Writes folders of the navigation out."""
    config.nav = _written_out(config.nav, Path(config.docs_dir))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds what pages link to outside docs/."""
    found = {
        target
        for file in files.documentation_pages()
        for _, target, _ in outside(file.content_string, file.src_uri)
        if (ROOT / target).exists()  # else the link stays as it is, and the strict build names it
    }
    for target in sorted(found):
        files.append(File.generated(config, copy_of(target), content=_text_of(ROOT / target)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns links that leave docs/ to the copies, and indents lists."""
    depth = "../" * page.file.src_uri.count("/")
    for written, target, text in outside(markdown, page.file.src_uri):
        if (ROOT / target).exists():
            markdown = markdown.replace(written, f"{text}({depth}{copy_of(target)})")
    return indented(markdown)


def outside(markdown: str, page: str) -> Iterator[tuple[str, str, str]]:
    """The links of a page that leave docs/: as written, the path in the repository, and the text in brackets."""
    for match in _LINK.finditer(markdown):
        target = normpath(f"docs/{page}/../{match[2]}")
        if not target.startswith("docs/"):
            yield match[0], target, match[1]


def copy_of(target: str) -> str:
    """Where the site has the copy of a file, or the list of a folder, which browsers show as text."""
    return f"{COPIES}/{target.replace('/.', '/dot-').removeprefix('.')}.txt"


def indented(markdown: str) -> str:
    """Indents what belongs to an item of a list by four, however wide the item's marker is, and sets lists apart."""
    lines: list[str] = []
    width, fenced = 0, False
    for line in markdown.splitlines():
        marker = None if fenced else _MARKER.match(line)
        if marker:
            if not width and lines and lines[-1].strip():
                lines.append("")
            width = marker.end()
        elif not fenced and line.strip() and not line.startswith(" "):
            width = 0 if not (lines and lines[-1].strip()) else width
        elif width and line.startswith(" " * width):
            line = " " * _INDENT + line[width:]
        if _FENCE.match(line):
            fenced = not fenced
        lines.append(line)
    return "\n".join(lines) + "\n"


def _text_of(path: Path) -> str:
    if path.is_dir():
        return "".join(f"{each.name}{'/' if each.is_dir() else ''}\n" for each in sorted(path.iterdir()))
    return path.read_text("utf-8")


def _written_out(nav: Any, docs: Path) -> Any:
    if isinstance(nav, list):
        return [_written_out(each, docs) for each in nav]
    if isinstance(nav, dict):
        return {name: _written_out(each, docs) for name, each in nav.items()}
    if isinstance(nav, str) and nav.endswith("/*"):
        return [path.relative_to(docs).as_posix() for path in sorted((docs / nav[:-2]).glob("*.md"), key=_order)]
    return nav


def _order(path: Path) -> tuple[bool, str]:
    return path.name != "README.md", path.name
