"""JSON lines of a process without telemetry."""

import json
import logging
import sys
from typing import Any

from axon.runtime.json_lines import JsonLines


def _line(level: int, message: str, *values: object, event: str = "", error: bool = False) -> dict[str, Any]:
    info = None
    if error:
        try:
            raise ValueError("".join(["can", "ary"]))
        except ValueError:
            info = sys.exc_info()
    record = logging.LogRecord("axon.engine.x", level, "x.py", 1, message, values, info)
    if event:
        record.axon_event = event
    found: dict[str, Any] = json.loads(JsonLines("axon-engine").format(record))
    return found


def test_a_line_has_the_fields_of_the_servers_lines_in_their_order() -> None:
    line = _line(logging.WARNING, "packing into %s", "/a", event="engine.weights_packed")
    assert list(line) == ["ts", "level", "msg", "event", "service"]
    assert line["msg"] == "packing into /a"
    assert line["ts"].endswith("Z")


def test_a_line_without_event_names_its_logger_and_no_level_is_beyond_error() -> None:
    line = _line(logging.CRITICAL, "it burns")
    assert (line["logger"], line["level"]) == ("axon.engine.x", "error")
    assert "event" not in line


def test_an_exception_has_its_frames_and_not_its_message() -> None:
    line = _line(logging.ERROR, "failed", error=True)
    assert line["exception"].startswith("ValueError\n")
    assert "test_json_lines.py" in line["exception"]
    assert "canary" not in line["exception"]


def test_a_line_can_always_be_written_and_steers_no_terminal() -> None:
    record = logging.LogRecord("x", logging.WARNING, "x.py", 1, "a\x9b31m\u2028\ud800b", (), None)
    text = JsonLines("axon-engine").format(record)
    assert text.isascii()
    assert json.loads(text)["msg"] == record.msg
