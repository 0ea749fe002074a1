"""Writes docs/logs.md and the index template of OpenSearch from the table of events; with --check fails when either has
drifted."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "logs.md"
TEMPLATE = ROOT / "deploy" / "observability" / "opensearch" / "index-template.json"
sys.path.insert(0, str(ROOT / "src"))

from axon.telemetry.events import ROOMS  # noqa: E402
from axon.telemetry.events.event import Event  # noqa: E402
from axon.telemetry.events.fields import COMMON, FIELDS, Field  # noqa: E402
from axon.telemetry.events.template import index_template  # noqa: E402

INTRODUCTION = """# Logs

<!-- Written by scripts/logs_page.py from src/axon/telemetry/events; edit the table there. -->

Every process writes its log to stderr, one event a line. On a terminal a line is for people: time of day, level,
event, fields. Elsewhere it is one JSON object, here on two lines ([settings](settings.md#log): `log.format`,
`log.level`):

```json
{"ts": "2026-11-17T10:28:49.120933Z", "level": "warning", "msg": "A turn had no owner and was in no lane: …",
 "event": "turn.orphaned", "service": "axon-control", "session_id": "conv_1", "tenant_id": "acme", "turn": "chatcmpl-1"}
```

Filter by `event`: names stay the same from release to release, sentences may become better. A field that does not
apply is absent. To follow one request, filter by `request_id` (the response header `x-request-id`) at the gateway, and
by `turn` (the answer's id) everywhere else.

**What is never in a line**: prompts, answers, tool arguments, schemas, metadata, keys and passwords. Fields with such
names are replaced by `[redacted]`, keys and passwords are cut out of any text, and of an exception that may quote its
input only the type is written. `tests/security/test_canaries.py` sends canaries through every route and searches the
log for them.

**What is not JSON**: a process that cannot start ends with one sentence, `axon: ...`, and an exit code; an engine that
crashes may leave the words of a native library. The shipped configurations keep such lines as they are. The start
screen of `axon serve` goes to stdout, and is left out where stdout and stderr are one file and lines are JSON; the
event `process.ready` says the same without the key. A container's runtime makes one log of two pipes: set
`AXON_LOG_BANNER=never` there.

## The last lines of a process

`GET /v1/admin/logs` returns the last 1,000 lines of the gateway process that answers (2 million characters at most),
as JSON objects, redacted as above, whatever the format on stderr. It needs the scope `admin`.

```sh
curl -H "Authorization: Bearer $KEY" "http://127.0.0.1:8000/v1/admin/logs?level=warning&limit=20"
```

`axon serve` is one process, so the lines are those of gateway, worker and control together. With `--processes`, and in
a fleet, they are those of the front or gateway that happened to answer; `process` names it, `note` says it in words,
and `?process=` refuses the answer of any other. Lines of workers and control are not collected by gateways, since to
ask every process takes seconds: read them where your logs go, or on the machine.

`GET /v1/admin/alerts` returns the active alerts of the Alertmanager that `alerts.url` names; without one it answers
404 `alerts_not_configured`.

## Shipping them

| for | file |
|---|---|
| OpenTelemetry Collector: logs, traces, metrics | [config.yaml](../deploy/observability/collector/config.yaml) |
| Fluent Bit to OpenSearch | [fluent-bit.yaml](../deploy/observability/fluent-bit/fluent-bit.yaml) |
| OpenSearch index template | [index-template.json](../deploy/observability/opensearch/index-template.json) |
| Grafana Alloy to Loki | [config.alloy](../deploy/observability/loki/config.alloy) |

The index template is written from the tables below, and a test checks lines of live servers against it, field by
field and type by type. In Loki only `service` and `level` are labels, because each value of a label is a stream of its
own; the rest is found by `| json`:

```
{service="axon-worker", level="warning"} | json | event="engine.died"
```

The tests parse these files and check their names and fields. They were not run with the programs themselves: neither
the Collector, Fluent Bit, Alloy nor OpenSearch was there when they were written.

## Fields

Every line has `ts`, `level`, `msg` and `service`; the others of the first table where they apply.
"""


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION, *_table_of_fields(COMMON), "", "Fields of single events:", ""]
    parts += _table_of_fields([each for each in FIELDS.values() if each not in COMMON])
    for room, events in ROOMS.items():
        parts += ["", f"## {room}", "", "| event | level | sentence | fields |", "|---|---|---|---|"]
        parts += [_row(each) for each in events]
    return "\n".join(parts) + "\n"


def _table_of_fields(fields: "list[Field] | tuple[Field, ...]") -> list[str]:
    return ["| field | type | meaning |", "|---|---|---|", *(f"| `{f.name}` | {f.type} | {f.says} |" for f in fields)]


def _row(event: Event) -> str:
    fields = ", ".join(f"`{name}`" for name in event.fields)
    return f"| `{event.name}` | {' or '.join(event.levels)} | {event.says} | {fields} |"


def main() -> int:
    texts = {PAGE: page(), TEMPLATE: json.dumps(index_template(), indent=2) + "\n"}
    if "--check" in sys.argv[1:]:
        drifted = [path for path, text in texts.items() if not path.is_file() or path.read_text("utf-8") != text]
        for path in drifted:
            print(f"{path.relative_to(ROOT)} has drifted from the code; run `make logs-page`.", file=sys.stderr)
        return int(bool(drifted))
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
