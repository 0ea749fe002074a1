"""Writes docs/settings.md from the fields and their docstrings; with --check fails when the page has drifted."""

import sys
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "settings.md"
sys.path.insert(0, str(ROOT / "src"))

from axon.settings import Described, describe  # noqa: E402

INTRODUCTION = """# Settings

<!-- Written by scripts/settings_page.py from the code; edit the docstrings there. -->

A value comes from the first of: a flag, the environment, a TOML file, the default. The file is the one named by
`--config` or `AXON_CONFIG`, else `axon.toml` in the working folder. Names that do not exist are refused.
`axon config show` prints the effective values and where each came from, secrets and the passwords of URLs hidden. A URL
that is not written as one, or whose user and password have a `/` or `@` that is not %2F or %40, is hidden as a whole.

```toml
model = "default"

[gateway]
port = 9000
```

Any setting can be given as a flag: `axon serve --set gateway.port=9000`.
"""


def section_of(each: Described) -> str:
    return each.name.rpartition(".")[0]


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for section, settings in groupby(describe(), section_of):
        parts.append(f"## {f'`[{section}]`' if section else 'Top level'}\n")
        parts.append("| setting | variable | type | default | meaning |\n|---|---|---|---|---|")
        parts.extend(row(each) for each in settings)
        parts.append("")
    return "\n".join(parts).rstrip("\n") + "\n"


def row(each: Described) -> str:
    default = f"`{each.default}`" if each.default else ""
    meaning = each.doc.replace("``", "`").replace("\n", " ").replace("|", "\\|")
    return f"| `{each.name}` | `{each.variable}` | {each.type} | {default} | {meaning} |"


def main() -> int:
    text = page()
    if "--check" in sys.argv[1:]:
        if not PAGE.is_file() or PAGE.read_text("utf-8") != text:
            print("docs/settings.md has drifted from the code; run `make settings-page`.", file=sys.stderr)
            return 1
        return 0
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
