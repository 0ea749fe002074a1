"""Every event fits the shipped index template."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from axon.telemetry import logs
from axon.telemetry.config import LogConfig
from axon.telemetry.events import EVENTS
from axon.telemetry.events.event import Event
from axon.telemetry.events.fields import COMMON, FIELDS, Field
from axon.telemetry.events.template import index_template
from tests.telemetry.index_mapping import TEMPLATE, problems, properties

VALUES: dict[str, Any] = {
    "boolean": True,
    "double": 0.5,
    "keyword": ["one", "two"],
    "long": 3,
    "object": {"a": 1},
    "text": "some words",
}


@pytest.fixture(autouse=True)
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    logs.configure(LogConfig(format="json", level="debug"), stream=stream)
    yield stream
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


@pytest.mark.parametrize("event", EVENTS.values(), ids=lambda event: event.name)
def test_a_line_of_every_event_fits(event: Event, stream: io.StringIO) -> None:
    ids = {"request_id": "r", "trace_id": "t", "span_id": "s", "session_id": "c", "tenant_id": "a", "attempt": 1}
    values = {name: VALUES[FIELDS[name].type] for name in event.fields}
    for level in event.levels:
        getattr(structlog.get_logger("axon"), level)(event.name, turn="turn_1", **values, **ids)
    for line in map(json.loads, stream.getvalue().splitlines()):
        assert problems(line, properties()) == []
        assert line["event"] == event.name


def test_a_line_of_a_library_and_one_with_an_exception_fit(stream: io.StringIO) -> None:
    logging.getLogger("library").error("it burns", extra={"where": "there", "many": [1, "2"]})
    try:
        raise ValueError("x")
    except ValueError:
        structlog.get_logger("axon").exception("request.failed")
        logging.getLogger("library").critical("it burns", exc_info=True)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert len(lines) == 3
    assert [problems(line, properties()) for line in lines] == [[], [], []]


def test_the_shipped_template_is_made_of_the_fields() -> None:
    assert json.loads(TEMPLATE.read_text("utf-8")) == index_template()


@pytest.mark.parametrize(
    "document",
    [
        {"nothing": 1},
        {"level": 3},
        {"level": "x" * 2000},
        {"attempt": "1"},
        {"attempt": True},
        {"attempt": 2**63},
        {"ts": "yesterday"},
        {"ts": "2026-11-17T10:00:00"},
        {"extra": "x"},
        {"by_age": "true"},
        {"exit_codes": [1, "x"]},
    ],
    ids=str,
)
def test_what_does_not_fit_is_found(document: dict[str, Any]) -> None:
    assert problems(document, properties())


def test_the_common_fields_come_first_in_a_line_and_in_the_table() -> None:
    assert [each.name for each in COMMON][:5] == ["ts", "level", "msg", "event", "service"]
    assert list(FIELDS.values())[: len(COMMON)] == list(COMMON)
    assert all(isinstance(each, Field) and each.says for each in FIELDS.values())
