"""Log lines: their shape, and what must never be in one."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any, Literal

import pytest
import structlog

from axon.domain.tenants.key import new_key_text
from axon.errors import EngineError
from axon.telemetry import logs, redact
from axon.telemetry.config import LogConfig
from axon.telemetry.events import EVENTS
from tests.contracts.builders import make_job

CANARY = "the moon is made of canary"


@pytest.fixture(autouse=True)
def _restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    structlog.contextvars.clear_contextvars()  # what a test before this one has bound
    yield
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


class Written:
    """What a configured process wrote."""

    def __init__(self, format: Literal["json", "console"] = "json", level: Literal["debug", "info"] = "debug") -> None:
        self._stream = io.StringIO()
        logs.configure(LogConfig(format=format, level=level), stream=self._stream)

    @property
    def text(self) -> str:
        return self._stream.getvalue()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]


def test_a_line_is_one_json_object_with_its_event_and_the_sentence_of_that() -> None:
    written = Written()
    structlog.get_logger().warning("turn.handed_on", turn="t1", owner="w1", session_id=None)
    (line,) = written.lines
    assert list(line) == ["ts", "level", "msg", "event", "service", "turn", "owner"]
    assert line | {"ts": ""} == {
        "ts": "",
        "level": "warning",
        "msg": EVENTS["turn.handed_on"].says,
        "event": "turn.handed_on",
        "service": "axon",
        "turn": "t1",
        "owner": "w1",
    }


def test_a_line_about_a_job_has_its_ids() -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    job = make_job("turn_1", tenant="acme", session="conv_1", trace=trace)
    ids = {"turn": "turn_1", "tenant_id": "acme", "session_id": "conv_1", "attempt": 2}
    assert logs.about(job, 2) == ids | {"trace_id": "0af7651916cd43dd8448eb211c80319c"}
    assert logs.about(make_job("turn_1", tenant="acme", session="", trace="canary")) == {
        "turn": "turn_1",
        "tenant_id": "acme",
    }


def test_a_line_of_a_library_has_its_logger_and_its_fields_apart() -> None:
    written = Written()
    logging.getLogger("library").warning("it said %s", "so", extra={"size": 3, "request_id": "r1"})
    logging.getLogger("axon.engine").warning("slow: %s", "no int8", extra={"axon_event": "engine.runs_float32"})
    theirs, ours = written.lines
    assert (theirs["msg"], theirs["logger"], theirs["extra"]) == ("it said so", "library", {"size": 3})
    assert theirs["request_id"] == "r1"
    assert "event" not in theirs
    assert (ours["msg"], ours["event"]) == ("slow: no int8", "engine.runs_float32")


@pytest.mark.parametrize("format", ["json", "console"])
def test_the_ring_buffer_has_the_json_of_every_line(format: Literal["json", "console"]) -> None:
    assert logs.recent().last() == []
    written = Written(format)
    structlog.get_logger().info("engine.started", pid=3)
    logging.getLogger("uvicorn.error").warning("theirs")
    first, second = map(json.loads, logs.recent().last())
    assert (first["event"], first["pid"], second["msg"]) == ("engine.started", 3, "theirs")
    assert logs.writes_json() is (format == "json")
    assert written.text.count("\n") == 2


def test_the_context_is_on_every_line_inside_it_and_on_none_after() -> None:
    written = Written()
    with logs.context(request_id="r1", tenant_id="acme"):
        structlog.get_logger().info("ours")
        logging.getLogger("uvicorn.error").info("theirs")
    structlog.get_logger().info("after")
    ours, theirs, after = written.lines
    assert ours["request_id"] == theirs["request_id"] == "r1"
    assert ours["tenant_id"] == theirs["tenant_id"] == "acme"
    assert "request_id" not in after


def test_what_a_driver_logs_and_raises_as_well_is_not_written_twice() -> None:
    written = Written()
    logging.getLogger("aiormq.connection").error("error when creating transport: %r", OSError(111, "refused"))
    logging.getLogger("aiormq.connection").error("something else")
    (line,) = written.lines
    assert line["msg"] == "something else"


def test_lines_below_the_level_are_not_written() -> None:
    written = Written(level="info")
    structlog.get_logger().debug("quiet")
    logging.getLogger("uvicorn.error").debug("quiet")
    logging.getLogger("httpx").info("quiet")
    assert written.text == ""


def test_the_standard_library_goes_through_the_same_pipe() -> None:
    written = Written()
    logging.getLogger("uvicorn.error").warning("Listening on %s", "http://x", extra={"color_message": "\x1b[1m"})
    (line,) = written.lines
    assert (line["msg"], line["level"], line["service"]) == ("Listening on http://x", "warning", "axon")
    assert "color_message" not in line


@pytest.mark.parametrize("format", ["json", "console"])
def test_a_key_is_never_written(format: Literal["json", "console"]) -> None:
    _, text = new_key_text()
    written = Written(format)
    log = structlog.get_logger()
    log.info(f"refused {text}", key=text, headers={"x": [text]}, raw=text.encode())
    log.info("refused", authorization=text, error=RuntimeError(text))
    logging.getLogger("uvicorn.error").error("got Bearer %s", text)
    try:
        raise RuntimeError(f"bad key {text}")
    except RuntimeError:
        log.exception("failed")
    assert text[13:] not in written.text
    assert written.text.count("axk_[redacted]") >= 5


@pytest.mark.parametrize("format", ["json", "console"])
def test_a_prompt_is_never_written(format: Literal["json", "console"]) -> None:
    written = Written(format)
    log = structlog.get_logger()
    log.info("asked", prompt=CANARY, body={"messages": [{"role": "user", "content": CANARY}]}, Text=CANARY)
    logging.getLogger("anywhere").info("asked", extra={"content": CANARY})
    log.info("asked", error=ValueError(CANARY))
    try:
        try:
            raise KeyError(CANARY)
        except KeyError as cause:
            raise ValueError(CANARY) from cause
    except ValueError as error:
        log.exception("failed")
        log.error("failed", exc_info=error)
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application")
        logging.getLogger("asyncio").error("Task exception was never retrieved\nfuture: <Task exception=%r>", error)
    assert "canary" not in written.text
    assert "ValueError" in written.text
    assert "caused by KeyError" in written.text


def test_counts_may_go_by_any_name() -> None:
    written = Written()
    structlog.get_logger().info("usage", prompt=12, output=3)
    assert (written.lines[0]["prompt"], written.lines[0]["output"]) == (12, 3)


def test_our_own_errors_keep_their_message_and_place() -> None:
    written = Written()
    try:
        raise EngineError("the engine is out of blocks")
    except EngineError:
        structlog.get_logger().exception("failed")
    exception = written.lines[0]["exception"]
    assert exception.startswith("EngineError: the engine is out of blocks\n")
    assert "test_logs.py" in exception


def test_a_url_keeps_its_password_to_itself() -> None:
    written = Written()
    structlog.get_logger().info("connected", url="amqp://axon:canary@broker:5672/")
    assert "canary" not in written.text
    assert "axon:[redacted]@broker" in written.text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("axk_abc", "axk_[redacted]"),
        ("xBearer\tabc", "xBearer\tabc"),
        ("Bearer\u2003abc", "Bearer [redacted]"),
        ("basic\x1cabc", "basic [redacted]"),
        ("redis://user:secret@host", "redis://user:[redacted]@host"),
        ("?password=secret", "?password=[redacted]"),
        ("redis://user:sec/ret@host", "redis://user:[redacted]@host"),
        ("redis://user:sec@ret@host", "redis://user:[redacted]@host"),
        ("host=h password=secret user=u", "host=h password=[redacted] user=u"),
        ("exception=ValueError('secret')", "exception=ValueError([redacted])"),
        ("/v1/chat/completions", "/v1/chat/completions"),
        (" padded ", " padded "),
        ("", ""),
    ],
)
def test_a_single_word_is_written_as_it_is_only_when_it_can_hide_nothing(text: str, written: str) -> None:
    assert redact.clean_text(text) == written
    assert redact.clean_named("name", text) == written


_ODD = "a\x1b[31mb\x9b2J\x85\u2028\u202ec\ud800\nd"


@pytest.mark.parametrize("format", ["json", "console"])
def test_no_text_steers_a_terminal_or_breaks_a_line(format: Literal["json", "console"]) -> None:
    written = Written(format)
    structlog.get_logger().warning("turn.handed_on", turn=_ODD.replace("\n", ""), owner=_ODD, nested={"a": [_ODD]})
    logging.getLogger("library").warning("said %s", _ODD)
    assert written.text.encode().count(b"\n") == 2
    assert not set(written.text) & set("\x1b\x9b\x85\u2028\u202e\ud800")
    if format == "json":
        first, second = written.lines
        assert (first["owner"], second["msg"]) == (_ODD, f"said {_ODD}")


def test_a_traceback_keeps_its_lines_on_a_terminal() -> None:
    written = Written("console")
    try:
        raise EngineError("broke \x1b[31m")
    except EngineError:
        structlog.get_logger().exception("request.failed")
    assert "\x1b" not in written.text
    assert len(written.text.splitlines()) > 2


def test_a_number_that_json_has_not_is_left_out() -> None:
    written = Written()
    structlog.get_logger().warning("turn.handed_on", after_s=float("nan"), nested={"a": float("inf"), "b": 1.5})
    (line,) = written.lines
    assert "after_s" not in line
    assert line["nested"] == {"a": None, "b": 1.5}
