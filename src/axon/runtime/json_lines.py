"""JSON log lines of a process that knows no telemetry, such as the engine's. Standard library only."""

import json
import logging
import traceback
from datetime import UTC, datetime

from axon.runtime.printable import in_json


class JsonLines(logging.Formatter):
    """Formats a record as the server's log lines are. A record names its event by ``extra={"axon_event": ...}``. Of an
    exception it writes the type and the frames, no message: that may quote a prompt."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        event = getattr(record, "axon_event", None)
        line = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z"),
            "level": "error" if record.levelno >= logging.CRITICAL else record.levelname.lower(),
            "msg": record.getMessage(),
            **({"event": event} if event else {}),
            "service": self._service,
            **({} if event else {"logger": record.name}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            frames = "".join(traceback.format_tb(record.exc_info[2]))
            line["exception"] = f"{record.exc_info[0].__name__}\n{frames}".rstrip("\n")
        return in_json(json.dumps(line, ensure_ascii=False))


def write_json_lines(service: str) -> None:
    """Has every logger of this process write JSON lines to stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines(service))
    logging.basicConfig(handlers=[handler])
