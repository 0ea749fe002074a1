"""The dashboards: one JSON each in Grafana's schema, with expressions that Prometheus can parse."""

import json
from pathlib import Path

import pytest

from axon.monitoring.boards import DASHBOARDS
from axon.monitoring.dashboard import Dashboard
from axon.monitoring.panel import Panel, rate, share
from axon.monitoring.yaml_text import yaml_text
from tests.monitoring.chosen import chosen
from tests.monitoring.test_rules import promtool

PANELS = [panel for board in DASHBOARDS for panel in board.panels]
UNITS = {"s", "reqps", "ops", "percentunit", "bytes", "short"}


def test_there_is_one_dashboard_for_each_subject() -> None:
    subjects = ["overview", "engine", "queue", "streams", "tenants", "models", "data"]
    assert [board.uid for board in DASHBOARDS] == [f"axon-{subject}" for subject in subjects]


@pytest.mark.parametrize("board", DASHBOARDS, ids=lambda each: each.uid)
def test_grafana_gets_every_panel_on_its_own_place(board: Dashboard) -> None:
    made = json.loads(json.dumps(board.grafana()))
    assert len({panel["id"] for panel in made["panels"]}) == len(made["panels"]) == len(board.panels) + len(board.rows)
    taken: set[tuple[int, int]] = set()
    for panel in made["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
    shown = [panel["title"] for panel in made["panels"] if panel["type"] != "row"]
    assert shown == [panel.title for panel in board.panels]
    assert {variable["name"] for variable in made["templating"]["list"]} == {"datasource", "model"}


@pytest.mark.parametrize("panel", PANELS, ids=lambda each: each.title)
def test_a_panel_says_what_it_shows_in_a_unit_that_grafana_knows(panel: Panel) -> None:
    assert panel.sentence.endswith(".")
    assert panel.unit in UNITS
    assert panel.queries


def test_titles_are_unique_on_a_dashboard() -> None:
    for board in DASHBOARDS:
        titles = [panel.title for panel in board.panels]
        assert len(set(titles)) == len(titles)


def test_prometheus_parses_every_expression(tmp_path: Path) -> None:
    expressions = [query.expr for panel in PANELS for query in panel.queries]
    rules = [{"record": f"panel_{number}", "expr": chosen(each)} for number, each in enumerate(expressions)]
    (path := tmp_path / "panels.yaml").write_text(yaml_text({"groups": [{"name": "panels", "rules": rules}]}))
    checked = promtool("check", "rules", str(path))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_share_is_zero_where_nothing_was_counted_as_its_part() -> None:
    assert rate("a", "b") == "sum by (b) (rate(a[$__rate_interval]))"
    assert share("a", "b", 'c="d"').startswith('(sum by (b) (rate(a{c="d"}[$__rate_interval])) or 0 * sum by (b)')
