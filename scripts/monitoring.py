"""Writes deploy/observability and the list of alerts in docs/slo.md from the code; with --check fails when they have
drifted."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "deploy" / "observability"
PAGE = ROOT / "docs" / "slo.md"
BEGIN, END = "<!-- alerts: written by scripts/monitoring.py -->", "<!-- end of alerts -->"
sys.path.insert(0, str(ROOT / "src"))

from axon.monitoring.alert import Alert  # noqa: E402
from axon.monitoring.files import files, write  # noqa: E402
from axon.monitoring.rules import ALERTS  # noqa: E402
from axon.monitoring.times import filled  # noqa: E402


def table() -> str:
    """All alerts, one row each rule."""
    rows = [row(each) for each in ALERTS]
    return "\n".join(["| alert | to | fires when | for | what it means |", "|---|---|---|---|---|", *rows])


def row(each: Alert) -> str:
    name = f"[{each.name}](runbooks/{each.name}.md)"
    burn = f", {each.labels['burn']} burn" if "burn" in each.labels else ""
    condition = filled(each.condition, 1.0).replace("|", "\\|")
    return f"| {name}{burn} | {each.severity} | `{condition}` | {each.hold} | {each.meaning} |"


def page() -> str:
    """docs/slo.md with the table of this code."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


def drifted() -> list[Path]:
    made = {FOLDER / name: text for name, text in files().items()}
    extra = set(FOLDER.rglob("axon-*.json")) - made.keys()
    wrong = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    return sorted([*wrong, *extra, *([] if PAGE.read_text() == page() else [PAGE])])


def main() -> int:
    if "--check" not in sys.argv:
        write(FOLDER, files())
        PAGE.write_text(page())
        return 0
    for path in (wrong := drifted()):
        print(f"{path.relative_to(ROOT)} is not what the code makes; run: make monitoring", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
