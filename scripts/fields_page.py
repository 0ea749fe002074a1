"""Writes docs/fields.md from the table of fields; with --check fails when it has drifted."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "fields.md"
sys.path.insert(0, str(ROOT / "src"))

from axon.gateway.directive import Directives, Treatment  # noqa: E402
from axon.gateway.directives import ROUTES  # noqa: E402

INTRODUCTION = """# Fields of requests: honoured, hints and refused

<!-- Written by scripts/fields_page.py from src/axon/gateway/directives.py; edit that table. -->

A directive that is dropped in silence is worse than one that is refused. So every field that a known client or engine
sends is in one of three groups:

- **honoured**: it does what it says; [api.md](api.md) says what that is.
- **hint**: it changes nothing by its nature, and no value of it is refused.
- **refused**: it asks for something that this server does not do. The answer is a 400 with the field's name in `param`.
  Null and the values listed here are accepted, because they ask for nothing.

A field in none of the tables is ignored: no client is known that sends it. How to ask for JSON, a regex, a choice or a
grammar: [structured-output.md](structured-output.md).
"""


def page() -> str:
    """The whole page."""
    return INTRODUCTION + "".join(map(section, ROUTES))


def section(table: Directives) -> str:
    honoured = ", ".join(f"`{name}`" for name in sorted(table.named(Treatment.HONOURED)))
    hints = table.named(Treatment.HINT)
    refused = table.named(Treatment.REFUSED)
    lines = [f"\n## `{table.route}`\n", f"Honoured: {honoured}.\n", "| hint | |\n|---|---|"]
    lines += [f"| `{name}` | {hints[name].note} |" for name in sorted(hints)]
    lines.append("\n| refused | unless it is | |\n|---|---|---|")
    for name in sorted(refused):
        neutral = ", ".join(f"`{json.dumps(value)}`" for value in refused[name].neutral)
        lines.append(f"| `{name}` | {neutral} | {refused[name].note} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    text = page()
    if "--check" in sys.argv:
        if not PAGE.is_file() or PAGE.read_text() != text:
            sys.exit("docs/fields.md has drifted from the table; run scripts/fields_page.py")
        return
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
