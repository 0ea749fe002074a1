"""Writes docs/metrics.md from the declarations; with --check fails when the page has drifted."""

import sys
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "metrics.md"
sys.path.insert(0, str(ROOT / "src"))

from axon.telemetry.declared.declaring import Declared  # noqa: E402
from axon.telemetry.metrics import Metrics  # noqa: E402

INTRODUCTION = """# Metrics

<!-- Written by scripts/metrics_page.py from src/axon/telemetry/declared/; edit the sentences there. -->

Every process serves its metrics in Prometheus's format at `/metrics`, on the port of its probes (`--metrics-port`).
The server binds that port to the loopback interface unless `metrics_host` says otherwise, and asks for no key: no
metric contains a prompt, an answer or a key.

- **Units** are base units: seconds, bytes, tokens, and ratios from 0 to 1. A counter ends in `_total`.
- **Labels** are bounded. `model`, `version`, `worker` and `zone` have one value for each deployed thing, and `class` is
  the service tier. `tenant` is on three counters alone; the first 100 tenants of a process have a value of their own,
  all others share `other`. A process that serves one zone has an empty `zone`.
- **Role**: a `panel` metric is on a dashboard or in an alert's rule; a `detail` is for those who look
  closer.
- **Several processes** (`--processes`) show one page: counters and histograms are added up. A gauge is added up too,
  unless the column *together* says `max`: then every process reads the same thing.

| label | meaning |
|---|---|
| `model` | name of the deployment that clients ask for |
| `version` | the version of it that answers |
| `worker` | name of the worker, which survives its restarts |
| `zone` | `zone` of the worker's settings |
| `class` | service tier of the turn: `flex`, `default` or `priority` |
| `tenant` | id of the tenant, or `other` |
| `group` | deployment, version and pool of replicas that are scaled together |
| `dep`, `op` | a service (`store`, `live`, `queue`, `journal`) and the call |
"""

OF_SUBJECT = {
    "OpenTelemetry's GenAI conventions": """The semantic conventions for generative AI are still in development; these
are the names that OpenTelemetry's Prometheus exporter gives to their server metrics, with the conventions' buckets.
They are measured on every turn that a worker ends. `gen_ai_operation_name` is `chat`, `text_completion` or
`embeddings`; `gen_ai_response_model` is the version.
""",
    "vLLM's names": """With `--metrics-compat vllm` (setting `metrics.compat`) the page also has the names that
dashboards, KEDA objects and the Gateway API Inference Extension expect of vLLM, with vLLM's labels and buckets; see
[vllm-metrics.md](vllm-metrics.md).
""",
}


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for subject, declared in groupby(Metrics("vllm").declared, lambda each: each.subject):
        parts.append(f"## {subject}\n")
        if subject in OF_SUBJECT:
            parts.append(OF_SUBJECT[subject])
        parts.append("| metric | type | unit | labels | meaning | role | together |\n|---|---|---|---|---|---|---|")
        parts.extend(row(each) for each in declared)
        parts.append("")
    parts.append(buckets())
    return "\n".join(parts).rstrip("\n") + "\n"


def row(each: Declared) -> str:
    labels = ", ".join(f"`{label}`" for label in each.labels)
    together = each.together if each.kind == "gauge" else ""
    return f"| `{each.name}` | {each.kind} | {each.unit} | {labels} | {each.sentence} | {each.role} | {together} |"


def buckets() -> str:
    """The bounds of the histograms' buckets, each set once."""
    sets: dict[tuple[float, ...], list[str]] = {}
    for each in Metrics("vllm").declared:
        if each.buckets:
            sets.setdefault(each.buckets, []).append(each.name)
    lines = ["## Buckets\n", "| upper bounds | metrics |\n|---|---|"]
    for bounds, names in sets.items():
        lines.append(f"| {' '.join(f'{bound:g}' for bound in bounds)} | {', '.join(f'`{name}`' for name in names)} |")
    return "\n".join(lines)


def main() -> int:
    text = page()
    if "--check" in sys.argv[1:]:
        if not PAGE.is_file() or PAGE.read_text("utf-8") != text:
            print("docs/metrics.md has drifted from the code; run `make metrics-page`.", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
