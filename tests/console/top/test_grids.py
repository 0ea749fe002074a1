"""The tables of a look: which rows pass a filter, in which order, and what their cells say."""

from dataclasses import replace

import pytest

from axon.console.top.grid import Grid
from axon.console.top.grids import MAX_ROWS, grid_of
from axon.console.top.rates import rates
from axon.console.top.view import Section, Sort, View
from axon.domain.overview import Overview, QueueLook, TenantLook
from axon.domain.presence import GpuUse
from tests.console.top.looks import gateway, model, overview, tenant, worker

QUEUES = (QueueLook(model="small", requests=3, tokens=450.0), QueueLook(model="large", pool="gold"))


def look(at: float = 100.0, *, tokens: int = 0) -> Overview:
    return overview(
        worker("w1", at=at, running=2, answer=2 * tokens, kv=0.2, tenants=(tenant("acme", 2, 0, 2 * tokens),)),
        worker("w2", at=at, model="large", running=5, answer=tokens, kv=0.9, tenants=(tenant("Zürich", 5, 0, tokens),)),
        at=at,
        of=gateway(up_s=at),
        models=(model("small", wanted=2), model("large"), model("rare", state="cold", workers=0)),
        queues=QUEUES,
        tenants=(TenantLook(tenant="acme"), TenantLook(tenant="refused", rejected=round(at))),
    )


def grid(section: Section, view: View | None = None) -> Grid:
    after = look(102.0, tokens=100)
    return grid_of(section, after, rates(look(), after), view or View())


def names(section: Section, view: View) -> list[str]:
    return [row[0] for row in grid(section, view).rows]


def cells(section: Section, name: str) -> dict[str, str]:
    """A row by its columns' titles; of two with the same title the first."""
    found = grid(section)
    row = next(row for row in found.rows if row[0] == name)
    pairs = zip((column.title for column in found.columns), row, strict=True)
    return dict(reversed(list(pairs)))


def test_a_models_row() -> None:
    small = cells(Section.MODELS, "small")
    assert (small["state"], small["replicas"], small["versions"]) == ("ready", "1/2", "v1×1*")
    assert (small["run/slots"], small["waiting"], small["tokens"]) == ("2/8", "3", "450")
    assert (small["out/s"], small["KV"], small["TTFT p50"]) == ("100", "20%", "-")
    assert cells(Section.MODELS, "rare")["state"] == "cold"


def test_a_tenants_row() -> None:
    acme = cells(Section.TENANTS, "acme")
    assert (acme["running"], acme["out/s"], acme["share"], acme[""]) == ("2", "100", "67%", "███████")
    assert cells(Section.TENANTS, "refused")["refused/s here"] == "1"


def test_a_workers_row() -> None:
    gpus = (GpuUse(index=0, utilization=0.5, memory_bytes=2**30), GpuUse(index=1, utilization=1.0, memory_bytes=2**30))
    seen = overview(worker(gpus=gpus, zone="z1", draining=True, age_s=3.2), worker("w2", age_s=11.0))
    drawn = grid_of(Section.WORKERS, seen, rates(None, seen), View(sort=Sort.NAME))
    titles = [column.title for column in drawn.columns]
    first = dict(zip(titles, drawn.rows[0], strict=True))
    assert (first["zone"], first["pool"], first["state"], first["seen"]) == ("z1", "-", "draining", "3 s")
    assert (first["GPU"], first["memory"], first["out/s"]) == ("75%", "2.0 GiB", "-")
    assert dict(zip(titles, drawn.rows[1], strict=True))["state"] == "silent"
    assert drawn.marked == {0, 1}


def test_queues_without_anybody_are_shown_only_when_they_are_asked_for() -> None:
    assert grid(Section.QUEUES).rows == (("small", "-", "3", "450"),)
    assert names(Section.QUEUES, View(section=Section.QUEUES)) == ["small", "large"]


@pytest.mark.parametrize(
    ("view", "models", "tenants", "workers"),
    [
        (View(), ["large", "small", "rare"], ["Zürich", "acme", "refused"], ["w2", "w1"]),
        (View(sort=Sort.TOKENS), ["small", "large", "rare"], ["acme", "Zürich", "refused"], ["w1", "w2"]),
        (View(sort=Sort.WAITING), ["small", "large", "rare"], ["Zürich", "acme", "refused"], ["w2", "w1"]),
        (View(sort=Sort.KV), ["large", "small", "rare"], ["Zürich", "acme", "refused"], ["w2", "w1"]),
        (View(sort=Sort.NAME), ["large", "rare", "small"], ["acme", "refused", "Zürich"], ["w1", "w2"]),
        (View(is_reversed=True), ["rare", "small", "large"], ["refused", "acme", "Zürich"], ["w1", "w2"]),
        (View(model="SMALL"), ["small"], ["acme"], ["w1"]),
        (View(tenant="zür"), ["large", "rare"], ["Zürich"], ["w2"]),
        (View(text="ac"), [], ["acme"], []),
        (View(text="cold"), ["rare"], [], []),
        (View(text="nothing"), [], [], []),
    ],
)
def test_rows_pass_filters_and_are_sorted(
    view: View, models: list[str], tenants: list[str], workers: list[str]
) -> None:
    assert names(Section.MODELS, view) == models
    assert names(Section.TENANTS, view) == tenants
    assert names(Section.WORKERS, view) == workers


def test_what_wants_attention_is_marked() -> None:
    stuck = replace(look(), models=(model("small", workers=0), model("large", state="failed"), model("rare")))
    drawn = grid_of(Section.MODELS, stuck, rates(None, stuck), View(sort=Sort.NAME))
    assert [row[0] for row in drawn.rows] == ["large", "rare", "small"]
    assert drawn.marked == {0, 2}


def test_hundreds_of_rows_are_bounded_and_counted() -> None:
    many = overview(models=tuple(model(f"m{number}") for number in range(512)), num_models=2000)
    drawn = grid_of(Section.MODELS, many, rates(None, many), View())
    assert (len(drawn.rows), drawn.num_rows) == (MAX_ROWS, 2000)
    filtered = grid_of(Section.MODELS, many, rates(None, many), View(text="m51"))
    assert (len(filtered.rows), filtered.num_rows) == (3, 3)  # m51, m510, m511


def test_names_cannot_move_the_cursor() -> None:
    evil = overview(worker("w\x1b[2J"), models=(model("日本\n"),))
    assert grid_of(Section.WORKERS, evil, rates(None, evil), View()).rows[0][0] == "w?[2J"
    assert grid_of(Section.MODELS, evil, rates(None, evil), View()).rows[0][0] == "日本?"
