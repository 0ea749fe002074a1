"""Log lines: their shape, and what must never be in one."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any, Literal

import pytest
import structlog

from axon.domain.key import new_key_text
from axon.errors import EngineError
from axon.telemetry import logs, redact
from axon.telemetry.config import LogConfig

CANARY = "the moon is made of canary"


@pytest.fixture(autouse=True)
def _restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
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


def test_a_line_is_one_json_object_with_its_time_level_and_message() -> None:
    written = Written()
    structlog.get_logger().info("turn accepted", turn="t1", num_tokens=3, _event="turn.accepted")
    (line,) = written.lines
    assert list(line)[:4] == ["ts", "level", "msg", "service"]
    assert line | {"ts": ""} == {
        "ts": "",
        "level": "info",
        "msg": "turn accepted",
        "service": "axon",
        "event": "turn.accepted",
        "turn": "t1",
        "num_tokens": 3,
    }


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
        ("exception=ValueError('secret')", "exception=ValueError([redacted])"),
        ("/v1/chat/completions", "/v1/chat/completions"),
        (" padded ", " padded "),
        ("", ""),
    ],
)
def test_a_single_word_is_written_as_it_is_only_when_it_can_hide_nothing(text: str, written: str) -> None:
    assert redact.clean_text(text) == written
    assert redact.clean_named("name", text) == written
