"""The tables of models, tenants, workers and queues: a look and its rates, filtered and sorted. Pure, no width."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from axon.console.top.figures import NOTHING, age, duration, number, percent, size
from axon.console.top.grid import Column, Grid, clean
from axon.console.top.rates import Flow, Rates, TenantFlow
from axon.console.top.view import Section, Sort, View
from axon.domain.overview import ModelLook, Overview, QueueLook, WorkerLook

MAX_ROWS = 500
"""Rows that a table has at most, however high the terminal."""
_STALE_S = 10.0
"""A worker that has announced nothing for so long wants attention."""
_BAR = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One row with what it is filtered and sorted by."""

    name: str
    cells: tuple[str, ...]
    models: frozenset[str] = frozenset()
    tenants: frozenset[str] = frozenset()
    running: float = 0.0
    tokens: float = 0.0
    waiting: float | None = None
    kv: float | None = None
    is_marked: bool = False


def grid_of(section: Section, look: Overview, rates: Rates, view: View) -> Grid:
    """One table."""
    return _MAKERS[section](look, rates, view)


def _models(look: Overview, rates: Rates, view: View) -> Grid:
    workers = _by_model(look)
    queued: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    for queue in look.queues:
        queued[queue.model] += queue.requests
        tokens[queue.model] += round(queue.tokens)
    rows = [
        _model_row(each, workers.get(each.name, ()), rates.models.get(each.name, Flow()), queued, tokens)
        for each in look.models
    ]
    columns = (
        Column(title="model", is_number=False),
        Column(title="state", rank=1, is_number=False),
        Column(title="replicas", rank=4),
        Column(title="versions", rank=9, is_number=False),
        Column(title="run/slots", rank=3),
        Column(title="waiting", rank=2),
        Column(title="tokens", rank=7),
        Column(title="out/s", rank=1),
        Column(title="in/s", rank=6),
        Column(title="TTFT p50", rank=5),
        Column(title="p99", rank=5),
        Column(title="gap p50", rank=5),
        Column(title="p99", rank=5),
        Column(title="KV", rank=4),
    )
    return _grid(Section.MODELS, columns, rows, view, look.num_models - len(look.models), "No model is offered.")


def _model_row(
    model: ModelLook, workers: Sequence[WorkerLook], flow: Flow, queued: Counter[str], tokens: Counter[str]
) -> _Row:
    running, slots = sum(each.running for each in workers), sum(each.slots for each in workers)
    known = [each.kv_use for each in workers if each.kv_use is not None]
    kv, waiting = max(known, default=None), queued[model.name]
    return _Row(
        name=model.name,
        cells=(
            model.name,
            model.state,
            _replicas(model),
            " ".join(f"{each.version}×{each.workers}{'*' if each.is_stable else ''}" for each in model.versions),
            f"{running}/{slots}",
            number(waiting),
            number(tokens[model.name]),
            number(flow.answer_per_s),
            number(flow.prompt_per_s),
            duration(flow.ttft.p50_s),
            duration(flow.ttft.p99_s),
            duration(flow.gaps.p50_s),
            duration(flow.gaps.p99_s),
            percent(kv),
        ),
        models=frozenset({model.name}),
        tenants=_tenants_of(workers),
        running=running,
        tokens=flow.answer_per_s or 0.0,
        waiting=waiting,
        kv=kv,
        is_marked=model.state == "failed" or (waiting > 0 and not model.workers),
    )


def _replicas(model: ModelLook) -> str:
    drains = f"-{model.draining}" if model.draining else ""
    wanted = "" if model.wanted is None else f"/{model.wanted}"
    return f"{model.workers}{drains}{wanted}"


def _tenants(look: Overview, rates: Rates, view: View) -> Grid:
    served: dict[str, set[str]] = {}
    for worker in look.workers:
        for each in worker.tenants:
            served.setdefault(each.tenant, set()).add(worker.model)
    rows = [_tenant_row(name, flow, served.get(name, ())) for name, flow in rates.tenants.items()]
    columns = (
        Column(title="tenant", is_number=False),
        Column(title="running", rank=1),
        Column(title="out/s", rank=1),
        Column(title="in/s", rank=4),
        Column(title="share", rank=2),
        Column(title="", rank=5, is_number=False),
        Column(title="asked/s here", rank=6),
        Column(title="refused/s here", rank=6),
    )
    return _grid(Section.TENANTS, columns, rows, view, look.num_tenants - len(look.tenants), "No tenant has asked yet.")


def _tenant_row(name: str, flow: TenantFlow, models: Sequence[str] | set[str]) -> _Row:
    return _Row(
        name=name,
        cells=(
            name,
            number(flow.running),
            number(flow.answer_per_s),
            number(flow.prompt_per_s),
            percent(flow.share),
            "█" * round((flow.share or 0.0) * _BAR),
            number(flow.requests_per_s),
            number(flow.rejected_per_s),
        ),
        models=frozenset(models),
        tenants=frozenset({name}),
        running=flow.running,
        tokens=(flow.answer_per_s or 0.0) + (flow.prompt_per_s or 0.0),
        is_marked=bool(flow.rejected_per_s),
    )


def _workers(look: Overview, rates: Rates, view: View) -> Grid:
    rows = [_worker_row(each, rates.workers.get(each.incarnation, Flow())) for each in look.workers]
    columns = (
        Column(title="worker", is_number=False),
        Column(title="model", rank=2, is_number=False),
        Column(title="version", rank=8, is_number=False),
        Column(title="zone", rank=6, is_number=False),
        Column(title="pool", rank=7, is_number=False),
        Column(title="state", rank=3, is_number=False),
        Column(title="run/slots", rank=1),
        Column(title="out/s", rank=1),
        Column(title="in/s", rank=5),
        Column(title="TTFT p99", rank=6),
        Column(title="gap p99", rank=6),
        Column(title="KV", rank=3),
        Column(title="GPU", rank=4),
        Column(title="memory", rank=7),
        Column(title="seen", rank=5),
    )
    return _grid(Section.WORKERS, columns, rows, view, look.num_workers - len(look.workers), "No worker is there.")


def _worker_row(worker: WorkerLook, flow: Flow) -> _Row:
    gpus = worker.gpus
    busy = sum(each.utilization for each in gpus) / len(gpus) if gpus else None
    is_stale = worker.age_s > _STALE_S
    return _Row(
        name=worker.name,
        cells=(
            worker.name,
            worker.model,
            worker.version,
            worker.zone or NOTHING,
            worker.pool or NOTHING,
            "silent" if is_stale else "draining" if worker.draining else "ready",
            f"{worker.running}/{worker.slots}",
            number(flow.answer_per_s),
            number(flow.prompt_per_s),
            duration(flow.ttft.p99_s),
            duration(flow.gaps.p99_s),
            percent(worker.kv_use),
            percent(busy),
            size(sum(each.memory_bytes for each in gpus)) if gpus else NOTHING,
            age(worker.age_s),
        ),
        models=frozenset({worker.model}),
        tenants=_tenants_of([worker]),
        running=worker.running,
        tokens=flow.answer_per_s or 0.0,
        kv=worker.kv_use,
        is_marked=is_stale or worker.draining,
    )


def _queues(look: Overview, rates: Rates, view: View) -> Grid:
    known = [each for each in look.queues if each.requests or each.tokens or view.section is Section.QUEUES]
    columns = (
        Column(title="queue", is_number=False),
        Column(title="pool", rank=2, is_number=False),
        Column(title="requests", rank=1),
        Column(title="tokens", rank=1),
    )
    more = look.num_queues - len(look.queues)
    return _grid(Section.QUEUES, columns, [_queue_row(each) for each in known], view, more, "Nobody waits.")


def _queue_row(queue: QueueLook) -> _Row:
    return _Row(
        name=queue.model,
        cells=(queue.model, queue.pool or NOTHING, number(queue.requests), number(queue.tokens)),
        models=frozenset({queue.model}),
        waiting=queue.requests,
        running=queue.requests,
        tokens=queue.tokens,
    )


def _grid(
    section: Section, columns: tuple[Column, ...], rows: Sequence[_Row], view: View, num_unknown: int, empty: str
) -> Grid:
    """``num_unknown`` rows are there of which the server's answer had no room."""
    kept = sorted((row for row in rows if _passes(row, view)), key=_order(view.sort), reverse=view.is_reversed)
    is_filtered = bool(view.text or view.model or view.tenant)
    return Grid(
        title=section.value,
        columns=columns,
        rows=tuple(tuple(clean(cell) for cell in row.cells) for row in kept[:MAX_ROWS]),
        num_rows=len(kept) + (0 if is_filtered else max(0, num_unknown)),
        marked=frozenset(index for index, row in enumerate(kept[:MAX_ROWS]) if row.is_marked),
        empty="None has passed the filter." if is_filtered and rows else empty,
    )


def _passes(row: _Row, view: View) -> bool:
    text = view.text.casefold()
    return (
        (not view.model or _has(row.models, view.model))
        and (not view.tenant or not row.tenants or _has(row.tenants, view.tenant))
        and (not text or any(text in cell.casefold() for cell in row.cells))
    )


def _has(names: frozenset[str], wanted: str) -> bool:
    return any(wanted.casefold() in name.casefold() for name in names)


def _order(sort: Sort) -> Callable[[_Row], tuple[float, float, float, str]]:
    def key(row: _Row) -> tuple[float, float, float, str]:
        name = row.name.casefold()
        match sort:
            case Sort.NAME:
                return 0.0, 0.0, 0.0, name
            case Sort.TOKENS:
                return -row.tokens, -row.running, 0.0, name
            case Sort.WAITING if row.waiting is not None:
                return -row.waiting, -row.running, -row.tokens, name
            case Sort.KV if row.kv is not None:
                return -row.kv, -row.running, -row.tokens, name
            case Sort.KV:
                return 0.0, -row.running, -row.tokens, name
            case _:
                return -row.running, -row.tokens, 0.0, name

    return key


def _by_model(look: Overview) -> dict[str, list[WorkerLook]]:
    found: dict[str, list[WorkerLook]] = {}
    for each in look.workers:
        found.setdefault(each.model, []).append(each)
    return found


def _tenants_of(workers: Sequence[WorkerLook]) -> frozenset[str]:
    return frozenset(tenant.tenant for worker in workers for tenant in worker.tenants)


_MAKERS: dict[Section, Callable[[Overview, Rates, View], Grid]] = {
    Section.MODELS: _models,
    Section.TENANTS: _tenants,
    Section.WORKERS: _workers,
    Section.QUEUES: _queues,
}
