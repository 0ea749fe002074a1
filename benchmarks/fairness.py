"""Who gets what of a busy server: shares, tiers, pools and overload, embedded and on a fleet of two workers.

python -m benchmarks.fairness                  everything: a table, and one JSON line last
python -m benchmarks.fairness --place fleet    the fleet alone, or the embedded server alone
python -m benchmarks.fairness --save           also keeps the JSON in benchmarks/results/ and draws the plot
python -m benchmarks.fairness --smoke          the smallest run: no model, a second for each part

Users ask again as soon as they are answered. Embedded runs the real engine and the default model; the fleet's engines
echo, with a step of 20 ms and 8 slots each, so that the cores decide nothing. *Noisy*: four tenants of equal weight,
each with as many users as its share of the slots, against the same with ten times as many of one tenant; the light
ones' times to the first token and between tokens are compared, with every slot in use both times.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.fleet.fleet import Fleet, shared_fleet  # noqa: E402
from tests.journeys.server import running  # noqa: E402

from axon.domain.tenants.tenant import Limits  # noqa: E402
from benchmarks.measures.crowd import Crowd, Party, jain, run_crowd  # noqa: E402
from benchmarks.measures.figures import Figures, percentile, rounded, table  # noqa: E402
from benchmarks.measures.report import Report, add_report_options  # noqa: E402
from benchmarks.measures.svg import bar_chart  # noqa: E402
from benchmarks.measures.tenancy import Keys, make_tenants  # noqa: E402

SLOTS = 8
STEP_S = 0.02
LIGHT = ("light-1", "light-2", "light-3")
HEAVY = "heavy"
MANY = tuple(f"many-{number:02d}" for number in range(20))
FREE = Limits(requests_per_minute=0.0, concurrent=10_000, queued=0)
TENANTS: dict[str, Limits] = {
    **dict.fromkeys((*LIGHT, HEAVY, *MANY), FREE),
    "three": replace(FREE, weight=3.0),
    "gold": replace(FREE, pool="gold"),
    "slice": replace(FREE, reserved=0.25),
}
GRACE_S = 5.0
"""How long a turn goes on whose reader has left, before the next part begins."""
BACKLOG = 32
"""Of the overloaded server: turns that may be queued or running."""


@dataclass(frozen=True, slots=True)
class Site:
    """A server that is up, with its tenants."""

    port: int
    model: str
    keys: Keys
    num_slots: int
    seconds: float
    num_tokens: int = 48
    ramp_s: float = 2.0
    """Over which users come."""
    settle_s: float = 4.0
    """Of each part, before anything counts."""

    def party(self, tenant: str, num_streams: int, **changes: Any) -> Party:
        given = {"keys": self.keys[tenant], "num_tokens": self.num_tokens, **changes}
        return Party(tenant=tenant, num_streams=num_streams, **given)

    def run(self, *parties: Party, times: float = 1.0, **options: Any) -> Crowd:
        given: Any = {"seconds": times * self.seconds, "ramp_s": self.ramp_s, "settle_s": self.settle_s, **options}
        crowd = asyncio.run(run_crowd(self.port, self.model, parties, **given))
        time.sleep(min(GRACE_S + 1.0, self.seconds))  # what was left behind is given up
        return crowd

    def noisy(self, times: int) -> tuple[Crowd, Figures]:
        """Everybody at its share, one tenant at so many times its own."""
        share = self.num_slots // 4
        crowd = self.run(self.party(HEAVY, times * share), *(self.party(name, share) for name in LIGHT))
        return crowd, {"tokens_per_s": crowd.rate(), "light": crowd.rate(*LIGHT) / 3, **crowd.latencies(*LIGHT)}


Rows = dict[str, Figures]


def noisy_rows(site: Site) -> Rows:
    _, share = site.noisy(1)
    _, flooded = site.noisy(10)
    ratios = {
        name: flooded[f"{name}_ms"] / share[f"{name}_ms"] if share[f"{name}_ms"] else 0.0
        for name in ("ttft_p50", "ttft_p99", "itl_p50", "itl_p99")
    }
    return {"everybody at its share": share, "one at ten times": flooded, "ratios": ratios}


def share_rows(site: Site) -> Rows:
    share = site.num_slots // 4
    equal = site.run(site.party(HEAVY, 8 * share), site.party(LIGHT[0], 3 * share))
    three = site.run(site.party("three", 8 * share), site.party(LIGHT[0], 3 * share))
    many = site.run(*many_parties(site), times=1.5)
    return {
        "1:1": {"ratio": equal.num_tokens(HEAVY) / max(1, equal.num_tokens(LIGHT[0])), "tokens_per_s": equal.rate()},
        "3:1": {"ratio": three.num_tokens("three") / max(1, three.num_tokens(LIGHT[0])), "tokens_per_s": three.rate()},
        "20 tenants": {"jain": jain([many.num_tokens(name) for name in MANY]), "tokens_per_s": many.rate()},
    }


def many_parties(site: Site) -> list[Party]:
    """Twenty tenants, each with a key and two to five users who ask for little."""
    return [
        site.party(name, 2 + number % 4, keys=site.keys[name][:1], num_tokens=24) for number, name in enumerate(MANY)
    ]


def tier_rows(site: Site) -> Rows:
    """Three tenants of one weight, each with users enough for every slot, in a tier of its own."""
    tiers = dict(zip(("priority", "default", "flex"), LIGHT, strict=True))
    long = 3 * site.num_tokens
    crowd = site.run(
        *(site.party(tenant, site.num_slots, tier=tier, name=tier, num_tokens=long) for tier, tenant in tiers.items())
    )
    rates = {tier: crowd.rate(tier) for tier in tiers}
    streams = {f"{tier}_stream": crowd.stream_rate(tier) for tier in tiers}
    ratio = streams["priority_stream"] / max(0.001, streams["default_stream"])
    return {"tiers": {**rates, **streams, "priority_to_default": ratio}}


def reserve_rows(site: Site) -> Rows:
    """A tenant with a quarter of the slots to itself that asks for half of it, beside others who ask for the same: one
    user for each slot that is left, and five times as many."""
    num = site.num_slots // 8

    def beside(users_each: int) -> Figures:
        names = MANY[: site.num_slots - num]
        others = [site.party(name, users_each, keys=site.keys[name][:1]) for name in names]
        return site.run(site.party("slice", num), *others, times=2).latencies("slice")

    share, flooded = beside(1), beside(5)
    later = {name: flooded[name] - share[name] for name in ("ttft_p50_ms", "ttft_p99_ms")}
    return {"a reserve, nobody waits": share, "a reserve, flooded": flooded, "a reserve, later by": later}


def pool_rows(site: Site) -> Rows:
    """A tenant with a worker of its own, while the others' slots are just in use, and while they are flooded."""
    gold = site.party("gold", site.num_slots // 4)
    share = site.run(gold, site.party(HEAVY, site.num_slots)).latencies("gold")
    flooded = site.run(gold, site.party(HEAVY, 4 * site.num_slots)).latencies("gold")
    return {"a pool, nobody waits elsewhere": share, "a pool, flood elsewhere": flooded}


def overload_rows(site: Site, fleet: Fleet) -> Rows:
    """Three times as many users as the backlog takes; then as few as before."""
    num_each = BACKLOG // 4

    def crowd(times: int, **options: Any) -> Crowd:
        names = (HEAVY, *LIGHT)
        return site.run(*(site.party(name, times * num_each) for name in names), **options)

    peak, before_mb = crowd(1), rss_mb(fleet)
    most_mb = [before_mb]
    over = crowd(3, watch=lambda: most_mb.append(rss_mb(fleet)))
    after = crowd(1)
    refusals = over.refusals_s()
    return {
        "overload at 3×": {
            "peak": peak.rate(),
            "goodput": over.rate(),
            "kept": over.rate() / max(0.001, peak.rate()),
            "refused": float(len(refusals)),
            "refusal_p99_ms": 1000 * percentile(refusals, 0.99) if refusals else 0.0,
            "rss_mb_before": before_mb,
            "rss_mb_most": max(most_mb),
        },
        "after it": {"tokens_per_s": after.rate(), "kept": after.rate() / max(0.001, peak.rate())},
    }


def rss_mb(fleet: Fleet) -> float:
    """Of all its processes, engines left out."""
    total_kb = 0
    for member in fleet.members:
        status = Path(f"/proc/{member.pid}/status").read_text()
        total_kb += next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
    return total_kb / 1024


def run_embedded(options: argparse.Namespace, folder: Path) -> Rows:
    """With the fair policy, and the flood once more with first-come-first-served."""
    engine: dict[str, object] = {"engine_max_sequences": SLOTS, "sessions_reader_grace_s": GRACE_S}
    if options.smoke:
        engine |= {"engine_kind": "echo", "engine_echo_step_s": 0.005}
    rows: Rows = {}
    for policy in ("fair", "first_come"):
        place = folder / policy
        with running(place, engine_policy=policy, admission_backlog_total=2000, **engine) as server:
            keys = make_tenants(TENANTS, data_dir=place)
            model = "echo" if options.smoke else "smollm2-135m-instruct"
            port = urlsplit(server.url).port
            assert port
            site = Site(port, model, keys, SLOTS, 2 * options.seconds, num_tokens=24)
            if options.smoke:
                site = replace(site, seconds=options.seconds, ramp_s=0.2, settle_s=0.5)
            site.run(site.party(HEAVY, SLOTS), times=0.2)  # the first steps are slow
            if policy == "fair":
                rows |= noisy_rows(site)
            else:
                rows["one at ten times, first come"] = site.noisy(10)[1]
    return _with_throughput(rows)


def run_fleet(options: argparse.Namespace, folder: Path) -> Rows:
    """Each policy, and the overload, on a fleet of its own; one after the other."""
    rows: Rows = {}
    measures = {"noisy": noisy_rows, "shares": share_rows, "tiers": tier_rows, "reserve": reserve_rows}
    if any(options.has(name) for name in (*measures, "pool")):
        with started_fleet(options, folder / "fair", "fair") as (site, fleet):
            for name in measures:
                if options.has(name):
                    rows |= _told(measures[name](site))
            if options.has("pool"):
                fleet.add("worker", worker_pool="gold")
                rows |= _told(pool_rows(site))
    if options.has("noisy"):
        with started_fleet(options, folder / "first-come", "first_come") as (site, _):
            rows |= _told({"one at ten times, first come": site.noisy(10)[1]})
    if options.has("overload"):
        with started_fleet(options, folder / "overload", "fair", backlog=BACKLOG) as (site, fleet):
            rows |= _told(overload_rows(site, fleet))
    return _with_throughput(rows)


@contextmanager
def started_fleet(
    options: argparse.Namespace, folder: Path, policy: str, *, backlog: int = 2000
) -> Iterator[tuple[Site, Fleet]]:
    """A gateway, two workers and a control, with the tenants in their store."""
    with ExitStack() as stack:
        fleet = shared_fleet(
            _made(folder),
            stack,
            engine_echo_step_s=STEP_S,
            engine_max_sequences=SLOTS,
            engine_policy=policy,
            admission_backlog_total=backlog,
            sessions_reader_grace_s=GRACE_S,
        )
        fleet.start(gateways=1, workers=2, controls=1)
        assert fleet.edge is not None
        keys = make_tenants(TENANTS, data_dir=fleet.data_dir, store=str(fleet.store))
        site = Site(fleet.edge.port, "echo", keys, 2 * SLOTS, options.seconds)
        site.run(site.party(HEAVY, SLOTS), times=0.1, settle_s=0.0)
        yield site, fleet


def _made(folder: Path) -> Path:
    folder.mkdir()
    folder.chmod(0o755)  # nginx has a user of its own
    return folder


def _told(rows: Rows) -> Rows:
    print(table(rows), flush=True)
    return rows


def _with_throughput(rows: Rows) -> Rows:
    fair, first = rows.get("one at ten times"), rows.get("one at ten times, first come")
    if fair and first:
        ratio = fair["tokens_per_s"] / max(0.001, first["tokens_per_s"])
        rows["throughput"] = {"to_first_come": ratio}
    return rows


def summary(places: dict[str, Rows]) -> dict[str, float]:
    """The worst of all places."""
    found: dict[str, list[float]] = {}
    for rows in places.values():
        for name, row, figure in (
            ("light_ttft_p99_ratio", "ratios", "ttft_p99"),
            ("light_itl_p99_ratio", "ratios", "itl_p99"),
            ("share_1_1", "1:1", "ratio"),
            ("share_3_1", "3:1", "ratio"),
            ("jain", "20 tenants", "jain"),
            ("throughput_ratio", "throughput", "to_first_come"),
            ("priority_to_default", "tiers", "priority_to_default"),
            ("overload_kept", "overload at 3×", "kept"),
        ):
            if row in rows:
                found.setdefault(name, []).append(rows[row][figure])
    best = {"jain", "throughput_ratio", "overload_kept", "priority_to_default"}  # the more, the better
    return {name: round(min(each) if name in best else max(each), 3) for name, each in found.items()}


def draw(places: dict[str, Rows]) -> str:
    groups: dict[str, dict[str, float]] = {}
    for place, rows in places.items():
        for figure, label in (("ttft_p99_ms", "first token, p99"), ("itl_p99_ms", "between tokens, p99")):
            groups[f"{place}: {label}"] = {
                name: rows[name][figure]
                for name in ("everybody at its share", "one at ten times", "one at ten times, first come")
                if name in rows
            }
    return bar_chart("A light tenant beside a noisy one", y_label="milliseconds", groups=groups)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--place", choices=("embedded", "fleet", "both"), default="both")
    parser.add_argument("--parts", default="", help="of the fleet: noisy,shares,tiers,reserve,pool,overload")
    parser.add_argument("--seconds", type=float, default=15.0, help="of each part; twice as long embedded")
    add_report_options(parser)
    parser.add_argument("--smoke", action="store_true", help="the smallest run: no model, no services")
    options = parser.parse_args(arguments)
    if options.smoke:
        options.seconds = 1.0
        options.place = "embedded"
    parts = {each.strip() for each in options.parts.split(",")} - {""}
    options.has = lambda name: not parts or name in parts
    return options


def main() -> None:
    options = parse()
    report = Report("fairness", options)
    places: dict[str, Rows] = {}
    with tempfile.TemporaryDirectory(prefix="axon-fairness-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        if options.place in ("embedded", "both"):
            places["embedded"] = run_embedded(options, _made(folder / "embedded"))
            print(table({f"embedded: {name}": row for name, row in places["embedded"].items()}), flush=True)
        if options.place in ("fleet", "both"):
            places["fleet"] = run_fleet(options, _made(folder / "fleet"))
            print(table({f"fleet: {name}": row for name, row in places["fleet"].items()}), flush=True)
    if report.is_kept:
        (ROOT / "docs" / "plots" / "fairness.svg").write_text(draw(places))
    report.end(
        {
            **summary(places),
            "places": {place: rounded(rows) for place, rows in places.items()},
        }
    )


if __name__ == "__main__":
    main()
