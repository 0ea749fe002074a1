"""``python -m tests.monitoring``: watches a live fleet through a few faults, and draws every dashboard from Prometheus.

With ``--save`` the pictures go to docs/dashboards, otherwise to the folder that is named.
"""

import argparse
import time
from pathlib import Path

from axon.monitoring.boards import DASHBOARDS
from tests.journeys.server import REPOSITORY
from tests.monitoring.drawing import drawn
from tests.monitoring.exercise import everything
from tests.monitoring.faults import QUICK
from tests.monitoring.scene import Scene, watched_fleet
from tests.monitoring.shown import lines_of

FACTOR = 1 / 120
_NOTE = (
    "Drawn from a live Prometheus: a fleet of echo engines on one machine under light load, through "
    "{faults}. Windows of rules and alerts are 1/120 of their length; GPU figures are made up."
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("dashboards"))
    parser.add_argument("--save", action="store_true", help="into docs/dashboards")
    asked = parser.parse_args()
    folder = REPOSITORY / "docs" / "dashboards" if asked.save else asked.folder
    folder.mkdir(parents=True, exist_ok=True)
    with watched_fleet(factor=FACTOR) as scene:
        start = time.time()
        everything(scene)
        for fault in QUICK:
            print(f"{fault.name}: {', '.join(fault.alerts)}", flush=True)
            with fault.breaks(scene):
                scene.unfired(*fault.alerts)
            scene.wait_quiet(*fault.alerts)
        draw(scene, folder, start, time.time())


def draw(scene: Scene, folder: Path, start: float, end: float) -> None:
    """One picture for each dashboard, of the time between both."""
    note = _NOTE.format(faults=", ".join(fault.name.replace("_", " ") for fault in QUICK))
    for board in DASHBOARDS:
        step_s = max(1.0, (end - start) / 150)
        lines = {panel.title: lines_of(scene.prometheus, panel, start, end, step_s) for panel in board.panels}
        (path := folder / f"{board.uid}.svg").write_text(drawn(board, lines, end - start, note))
        print(path)


if __name__ == "__main__":
    main()
