"""Logging: structlog and the standard library through one pipeline to stderr and a ring buffer. Knows no other sink.

A line is written by the name of its event, ``_logger.warning("turn.orphaned", turn=...)``; the table of events has its
sentence, which the JSON line has as ``msg``. Lines of libraries have their own ``msg`` and no ``event``.
"""

import logging
import re
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from axon.runtime import printable
from axon.telemetry import redact
from axon.telemetry.events import EVENTS
from axon.telemetry.events.fields import COMMON
from axon.telemetry.recent import RecentLines

if TYPE_CHECKING:
    from axon.domain.job import Job
    from axon.telemetry.config import LogConfig

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_FIRST = tuple(each.name for each in COMMON)
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
# Verbose at info, and Axon logs the same events itself.
_QUIET = ("httpx", "httpcore", "alembic", "sqlalchemy", "aiosqlite", "filelock", "uvicorn.access")
# Their own handlers would bypass the pipeline.
_HIJACKED = ("uvicorn", "uvicorn.error", "uvicorn.access", "fastapi", "asyncio")

# Duplicates: callers log failures with their cause, and Axon logs a server's start and end itself.
_REPEATED = {
    "aiormq.connection": ("error when creating transport: ",),
    "uvicorn.error": ("Started server process", "Shutting down", "Finished server process"),
}


def configure(config: "LogConfig", *, service: str = "axon", stream: TextIO | None = None) -> None:
    """Configures every logger of the process; calling it again replaces the configuration."""
    target = stream if stream is not None else sys.stderr
    people = config.format == "console" or (config.format == "auto" and target.isatty())
    shared = _shared_processors(service)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[config.level]),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    lines = structlog.stdlib.ProcessorFormatter(foreign_pre_chain=_foreign(shared), processors=_json_renderers())
    shown = (
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_foreign(shared), processors=_console_renderers(target.isatty())
        )
        if people
        else None
    )
    _install(_LogHandler(stream, lines, shown), _LEVELS[config.level])


def recent() -> RecentLines:
    """The last lines of this process; none before ``configure``."""
    handler = _installed()
    return handler.recent if handler else RecentLines()


def writes_json() -> bool:
    """Whether this process writes JSON lines to stderr. What is not a log line has no place there then."""
    handler = _installed()
    return handler is not None and not handler.is_for_people


def bind(**values: object) -> None:
    """Adds values such as ``session_id`` to every later line of the request at hand."""
    structlog.contextvars.bind_contextvars(**values)


def about(job: "Job", attempt: int | None = None) -> Mapping[str, str | int]:
    """The ids of a turn, for the lines that are about it."""
    ids: dict[str, str | int] = {"turn": job.id, "tenant_id": job.tenant}
    if job.session:
        ids["session_id"] = job.session
    if trace := _TRACEPARENT.fullmatch(job.trace):
        ids["trace_id"] = trace[1]
    if attempt is not None:
        ids["attempt"] = attempt
    return ids


def context(**values: object) -> AbstractContextManager[None]:
    """Adds values such as ``request_id`` and ``tenant_id`` to every line written inside it, across awaits."""
    return structlog.contextvars.bound_contextvars(**values)


class _LogHandler(logging.StreamHandler[TextIO]):
    """Writes each line to the stream, and its JSON to the ring buffer. Without a stream it is the current
    ``sys.stderr``, so that a progress bar can redraw around a line."""

    def __init__(self, stream: TextIO | None, lines: logging.Formatter, shown: logging.Formatter | None) -> None:
        super().__init__(stream if stream is not None else sys.stderr)
        self._follows_stderr = stream is None
        self._lines, self._shown = lines, shown
        self.recent = RecentLines()

    @property
    def is_for_people(self) -> bool:
        return self._shown is not None

    def format(self, record: logging.LogRecord) -> str:
        line = self._lines.format(record)
        self.recent.add(record.levelname.lower(), line)
        return line if self._shown is None else self._shown.format(record)

    def emit(self, record: logging.LogRecord) -> None:
        if self._follows_stderr:
            self.stream = sys.stderr
        super().emit(record)


def _installed() -> _LogHandler | None:
    return next((each for each in logging.getLogger().handlers if isinstance(each, _LogHandler)), None)


def _shared_processors(service: str) -> list[Processor]:
    def add_service(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        event.setdefault("service", service)
        return event

    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
        add_service,
        _render_exception,
        _redact,
        _drop_absent,
    ]


def _foreign(shared: list[Processor]) -> list[Processor]:
    return [_drop_uvicorn_colour, *shared, _gather_extra]


def _json_renderers() -> list[Processor]:
    return [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        _say,
        _in_order,
        structlog.processors.JSONRenderer(ensure_ascii=False, default=repr),
        _escape,
    ]


def _console_renderers(colours: bool) -> list[Processor]:
    return [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        _for_people,
        structlog.dev.ConsoleRenderer(
            colors=colours, timestamp_key="ts", exception_formatter=structlog.dev.plain_traceback
        ),
    ]


def _render_exception(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Formats exceptions with redacted messages: those of other libraries may quote a prompt."""
    info = event.pop("exc_info", None)
    if info is True:
        info = sys.exc_info()
    error = info[1] if isinstance(info, tuple) else info
    if isinstance(error, BaseException):
        event["exception"] = redact.format_exception(error)
    return event


def _redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    for name, value in event.items():
        if not name.startswith("_"):
            event[name] = redact.clean_named(name, value)
    return event


def _drop_absent(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Leaves out fields that are None: they do not apply to this line."""
    return {name: value for name, value in event.items() if value is not None or name.startswith("_")}


def _gather_extra(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Puts the fields that a library made up under ``extra``, and names its logger. The engine, which knows no
    telemetry, names its events by ``axon_event``."""
    if name := event.pop("axon_event", None):
        event["msg"], event["event"] = event["event"], name
    strange = {name: event.pop(name) for name in list(event) if name not in _FIRST and not name.startswith("_")}
    if strange:
        event["extra"] = strange
    if isinstance(record := event.get("_record"), logging.LogRecord):
        event["logger"] = record.name
    return event


def _say(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Adds the sentence of the event; the message of a line without one is its sentence."""
    if known := EVENTS.get(event["event"]):
        event.setdefault("msg", known.says)
    else:
        event["msg"] = event.pop("event")
    return event


def _in_order(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    return {name: event[name] for name in (*(n for n in _FIRST if n in event), *(n for n in event if n not in _FIRST))}


def _escape(_logger: WrappedLogger, _method: str, line: EventDict) -> str:
    return printable.in_json(str(line))  # structlog types what a renderer gives as what it got


def _for_people(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Shortens a line for a terminal: time of day only, no service name. Nothing in it may steer the terminal."""
    event["ts"] = str(event.get("ts", ""))[11:19]
    for name in ("service", "logger"):
        event.pop(name, None)
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = printable.on_terminal(value.rstrip(), keeps_lines=name == "exception")
    return event


def _drop_uvicorn_colour(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    record = event.get("_record")
    if isinstance(record, logging.LogRecord):
        record.__dict__.pop("color_message", None)
    return event


def _says_more(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith(_REPEATED[record.name])


def _install(handler: logging.Handler, level: int) -> None:
    root = logging.getLogger()
    root.handlers = [handler]
    # At debug, libraries log the bytes that they send, prompts included: debug is for Axon's loggers only.
    root.setLevel(max(level, logging.INFO))
    logging.getLogger("axon").setLevel(level)
    for name in _HIJACKED:
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
    for name in _REPEATED:
        logging.getLogger(name).addFilter(_says_more)
