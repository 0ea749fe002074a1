"""The pictures of dashboards."""

import xml.etree.ElementTree as ET

import pytest

from axon.monitoring.boards import DASHBOARDS, overview
from axon.monitoring.dashboard import Dashboard
from axon.monitoring.panel import Query
from tests.journeys.server import REPOSITORY
from tests.monitoring.drawing import Line, drawn, written
from tests.monitoring.shown import named
from tests.services.prometheus import Series

DOCS = REPOSITORY / "docs"
_SVG = "{http://www.w3.org/2000/svg}"


def test_a_dashboard_is_drawn_with_all_its_panels_lines_and_names() -> None:
    board = overview.DASHBOARD
    lines = {
        panel.title: [Line(name=f"<{index}>", points=[(0, 1), (60, 2)]) for index in range(9)] for panel in board.panels
    }
    lines[board.panels[0].title] = []
    root = ET.fromstring(drawn(board, lines, 60.0, "A test."))
    texts = [each.text or "" for each in root.iter(f"{_SVG}text")]
    assert {panel.title for panel in board.panels} <= set(texts)
    assert "no series" in texts
    assert "<0>" in texts
    assert "and 4 more" in texts
    assert len(list(root.iter(f"{_SVG}polyline"))) == 9 * (len(board.panels) - 1)


@pytest.mark.parametrize("board", DASHBOARDS, ids=lambda each: each.uid)
def test_the_page_has_a_picture_of_every_dashboard_with_all_its_panels(board: Dashboard) -> None:
    assert f"dashboards/{board.uid}.svg" in (DOCS / "dashboards.md").read_text()
    root = ET.parse(DOCS / "dashboards" / f"{board.uid}.svg").getroot()
    texts = [each.text or "" for each in root.iter(f"{_SVG}text")]
    assert {panel.title for panel in board.panels} <= set(texts), "draw it again: python -m tests.monitoring --save"
    assert "no series" not in texts


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        *((0.05, "s", "50 ms"), (2, "s", "2 s"), (0.7, "percentunit", "70 %"), (12e6, "bytes", "12 MB")),
        *((1000, "short", "1,000"), (0.5, "ops", "0.5"), (3e6, "short", "3 M"), (0, "bytes", "0 B")),
    ],
)
def test_values_are_written_in_their_unit(value: float, unit: str, text: str) -> None:
    assert written(value, unit) == text


def test_a_series_is_named_by_its_legend() -> None:
    series = Series(labels={"model": "m", "state": "free"}, values=[(0, 1)])
    assert named(Query(expr="x", legend="{{model}} {{state}} {{zone}}"), series) == "m free"
    assert named(Query(expr="x"), series) == "model=m, state=free"
