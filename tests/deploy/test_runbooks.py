"""What a runbook stops, a later step of it starts again."""

import re
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[2] / "docs" / "deploy").glob("*.md"))
UNDOING = {
    r'"suspend":true': r'"suspend":false',
    r"autoscaling\.keda\.sh/paused-replicas=0": r"autoscaling\.keda\.sh/paused-replicas-",
    r"start-zonal-shift": r"cancel-zonal-shift",
}
"""What is typed to stop something, and to undo that."""


def sections(page: Path) -> list[str]:
    return re.split(r"^## ", page.read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_runbook_stops_it_starts_again(page: Path) -> None:
    for section in sections(page):
        for stop, undo in UNDOING.items():
            if stopped := list(re.finditer(stop, section)):
                assert re.search(undo, section[stopped[-1].end() :]), f"{stop} is not undone"


def test_before_the_database_goes_back_nothing_is_left_that_starts_writers_again() -> None:
    (page,) = [each for each in PAGES if each.stem == "disaster-recovery"]
    (section,) = [each for each in sections(page) if each.startswith("The database must go back in time")]
    (step,) = re.findall(r"^2\. .*$", section, re.MULTILINE)
    for stop in ("scale deployment --all", "scale leaderworkerset --all", "paused-replicas=0", '"suspend":true'):
        assert stop in step
