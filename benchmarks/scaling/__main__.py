"""Compares the autoscaler with other policies and an oracle on simulated fleets, in virtual time.

python -m benchmarks.scaling                     the six loads
python -m benchmarks.scaling --more              also other cold starts, and 10,000 workers
python -m benchmarks.scaling --only crowd        one load
python -m benchmarks.scaling --save              keep the JSON in benchmarks/results/ and draw docs/plots/scaling-*.svg
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measures.report import Report, add_report_options
from benchmarks.measures.svg import Series, line_chart
from benchmarks.scaling.comparison import Comparison, Figures, compare, is_beaten
from benchmarks.scaling.scenarios import LOADS, MORE, SMOKE

ROOT = Path(__file__).resolve().parents[2]
WITHIN, HOURS = 0.99, 1.15


def table(name: str, figures: dict[str, Figures]) -> str:
    """Markdown: a row for each policy."""
    lines = [
        f"| {name} | within the target | replica hours, oracle = 1 | changes of direction / h | TTFT p99 | refused |",
        "|---|---|---|---|---|---|",
    ]
    for policy, each in figures.items():
        p99 = "refused" if each["ttft_p99_s"] >= 1e6 else f"{each['ttft_p99_s']:.2f} s"
        lines.append(
            f"| {policy} | {each['within']:.2%} | {each['hours_ratio']:.3f} | {each['turns_per_h']:.2f} | {p99} "
            f"| {each['refused']:.2%} |"
        )
    return "\n".join(lines)


def verdict(figures: dict[str, Figures]) -> dict[str, Any]:
    """Whether the goals hold on one load."""
    ours = figures["ours"]
    return {
        "within_99": ours["within"] >= WITHIN,
        "hours_115": ours["hours_ratio"] <= HOURS,
        "beaten_by": is_beaten(figures),
    }


def draw(comparison: Comparison) -> str:
    """Replicas over time by policy."""
    names = [name for name in comparison.results if name != "oracle"]
    series = [Series(name=name, points=comparison.results[name].points) for name in ("oracle", *names)]
    return line_chart(
        f"Replicas that are paid for: {comparison.load.name}", x_label="hours", y_label="replicas", series=series
    )


def _rounded(figures: Figures) -> Figures:
    return {name: float(f"{value:.5g}") for name, value in figures.items()}


def _plot_name(load: str) -> str:
    kept = "".join(letter if letter.isalnum() else "-" for letter in load)
    return f"scaling-{kept}.svg".replace("--", "-")


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="LOAD", help="loads by name")
    parser.add_argument("--more", action="store_true", help="also the crowd under other conditions, and 10,000 workers")
    add_report_options(parser)
    parser.add_argument("--smoke", action="store_true", help="the smallest run")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    report = Report("scaling", options, arguments)
    loads = SMOKE if options.smoke else (*LOADS, *(MORE if options.more or options.only else ()))
    chosen = [load for load in loads if not options.only or load.name in options.only]
    rows: dict[str, Any] = {}
    for load in chosen:
        started = time.process_time()
        comparison = compare(load)
        figures = comparison.figures()
        print(f"\n{table(load.name, figures)}\n", flush=True)
        rows[load.name] = {
            "figures": {name: _rounded(each) for name, each in figures.items()},
            "fluid_hours": round(comparison.fluid_hours, 3),
            "cpu_s": round(time.process_time() - started, 1),
            **verdict(figures),
        }
        print(json.dumps({load.name: verdict(figures)}), flush=True)
        if report.is_kept:
            (ROOT / "docs" / "plots" / _plot_name(load.name)).write_text(draw(comparison))
    result = report.told({"loads": rows})
    if report.is_kept:
        _keep(report.path(), result)
    print(json.dumps(result))


def _keep(path: Path, result: dict[str, Any]) -> None:
    """Writes the day's result; loads that another run of the day has kept stay, each with its command and machine."""
    kept = json.loads(path.read_text())["loads"] if path.exists() else {}
    where = {"command": result["command"], "machine": result["machine"]["cpu"]}
    named = {name: {**where, **row} for name, row in result["loads"].items()}
    path.write_text(json.dumps({**result, "loads": {**kept, **named}}, indent=2) + "\n")


if __name__ == "__main__":
    main()
