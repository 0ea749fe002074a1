"""Logging: structlog and the standard library through one pipeline to stderr. Knows no other sink.

A line has ts, level, msg, service and the values of the context (request_id, tenant_id). A machine-readable
event name is passed as ``_event=`` and written as ``event``.
"""

import logging
import sys
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from axon.telemetry import redact

if TYPE_CHECKING:
    from axon.telemetry.config import LogConfig

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_FIRST = ("ts", "level", "msg", "service", "request_id", "tenant_id", "event")
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
    handler = _StderrHandler() if stream is None else logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[_drop_uvicorn_colour, *shared],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderers(people, target.isatty()),
            ],
        )
    )
    _install(handler, _LEVELS[config.level])


def context(**values: object) -> AbstractContextManager[None]:
    """Adds values such as ``request_id`` and ``tenant_id`` to every line written inside it, across awaits."""
    return structlog.contextvars.bound_contextvars(**values)


class _StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to the current ``sys.stderr``, so that a progress bar can redraw around a line."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


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
    ]


def _renderers(people: bool, colours: bool) -> list[Processor]:
    if not people:
        return [
            structlog.processors.EventRenamer("msg", "_event"),
            _in_order,
            structlog.processors.JSONRenderer(ensure_ascii=False, default=repr),
        ]
    return [
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
        if not name.startswith("_") or name == "_event":
            event[name] = redact.clean_named(name, value)
    return event


def _in_order(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    return {name: event[name] for name in (*(n for n in _FIRST if n in event), *(n for n in event if n not in _FIRST))}


def _for_people(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Shortens a line for a terminal: time of day only, no service name."""
    event["ts"] = str(event.get("ts", ""))[11:19]
    event.pop("service", None)
    event.pop("_event", None)
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
