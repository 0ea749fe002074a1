"""A dashboard as a value, and as the JSON that Grafana 10 and 11 import. Pure."""

from dataclasses import dataclass

from axon.monitoring.panel import Panel, Query

_SCHEMA = 39
"""Version of the dashboard schema: Grafana 10.4 and later read it as it is, and migrate it where theirs is newer."""
_COLUMNS, _PER_ROW, _HEIGHT = 24, 2, 8
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}

Json = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """One page of panels."""

    uid: str
    """Stable over versions: links and bookmarks have it."""
    title: str
    sentence: str
    rows: tuple[Row, ...]

    @property
    def panels(self) -> tuple[Panel, ...]:
        return tuple(panel for row in self.rows for panel in row.panels)

    def grafana(self) -> Json:
        """The dashboard as Grafana imports it, with a choice of the data source and of models."""
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.sentence,
            "tags": ["axon"],
            "schemaVersion": _SCHEMA,
            "editable": True,
            "graphTooltip": 1,
            "refresh": "30s",
            "time": {"from": "now-3h", "to": "now"},
            "timezone": "",
            "templating": {"list": [_sources(), _models()]},
            "annotations": {"list": [_alerts()]},
            "links": [_others()],
            "panels": self._placed(),
        }

    def _placed(self) -> list[Json]:
        placed: list[Json] = []
        y = 0
        for row in self.rows:
            place = {"x": 0, "y": y, "w": _COLUMNS, "h": 1}
            placed.append({"type": "row", "title": row.title, "collapsed": False, "gridPos": place, "panels": []})
            y += 1
            for index, panel in enumerate(row.panels):
                column = index % _PER_ROW
                width = _COLUMNS // _PER_ROW
                place = {"x": column * width, "y": y, "w": width, "h": _HEIGHT}
                placed.append(_panel(panel, place))
                if column == _PER_ROW - 1 or index == len(row.panels) - 1:
                    y += _HEIGHT
        return [{"id": number, **each} for number, each in enumerate(placed, start=1)]


def _panel(panel: Panel, place: dict[str, int]) -> Json:
    options: Json = (
        {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "graphMode": "area"}
        if panel.kind == "stat"
        else {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}
    )
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.sentence,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": _field(panel), "overrides": []},
        "options": options,
        "targets": [_target(query, index) for index, query in enumerate(panel.queries)],
    }


def _field(panel: Panel) -> Json:
    steps: list[Json] = [{"color": "green", "value": None}]
    custom: Json = {}
    if panel.limit is not None:
        steps.append({"color": "red", "value": panel.limit})
        custom = {"thresholdsStyle": {"mode": "line"}}
    thresholds = {"mode": "absolute", "steps": steps}
    return {"unit": panel.unit, "min": 0, "thresholds": thresholds, "custom": custom}


def _target(query: Query, index: int) -> Json:
    return {
        "refId": chr(ord("A") + index),
        "datasource": _SOURCE,
        "expr": query.expr,
        "legendFormat": query.legend or "__auto",
        "editorMode": "code",
        "range": True,
    }


def _sources() -> Json:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "current": {}}


def _models() -> Json:
    return {
        "name": "model",
        "label": "Model",
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": "label_values(axon_workers, model)", "refId": "models"},
        "definition": "label_values(axon_workers, model)",
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _alerts() -> Json:
    return {
        "name": "Alerts",
        "enable": True,
        "datasource": _SOURCE,
        "expr": 'ALERTS{alertname=~"Axon.*", alertstate="firing"}',
        "titleFormat": "{{alertname}}",
        "textFormat": "{{model}}",
        "iconColor": "red",
        "step": "30s",
    }


def _others() -> Json:
    return {"type": "dashboards", "title": "Axon", "tags": ["axon"], "asDropdown": True, "keepTime": True}
