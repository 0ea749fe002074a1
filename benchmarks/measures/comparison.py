"""Several engines' figures side by side: ratios to the best peer, a table, a chart. Pure; measures nothing."""

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.measures.figures import Figures, shown
from benchmarks.measures.svg import bar_chart

AXON = "axon"
PLAIN = "axon-plain"
"""Axon without speculative decoding."""
OURS = (AXON, PLAIN)
RATE = "tokens_per_s"
TTFT = "ttft_p50_ms"

ByStreams = Mapping[int, Figures]


@dataclass(frozen=True, slots=True)
class Best:
    """The best peer, and what Axon's figure is to its."""

    name: str
    ratio: float


def best_peers(medians: Mapping[str, ByStreams], figure: str = RATE) -> dict[int, Best]:
    """By number of streams; more is better for a rate, less for a time."""
    best = max if figure == RATE else min
    found: dict[int, Best] = {}
    for num_streams, own in medians[AXON].items():
        peers = {name: by_streams[num_streams][figure] for name, by_streams in medians.items() if name not in OURS}
        name = best(peers, key=lambda each: peers[each])
        found[num_streams] = Best(name, float(f"{own[figure] / peers[name]:.3g}"))
    return found


def is_far_behind(name: str, rates: Mapping[str, float]) -> bool:
    """Whether a peer is slower than half the best one, so that more rounds of it would change no ratio."""
    best = max((rate for each, rate in rates.items() if each not in OURS), default=0.0)
    return name not in OURS and rates.get(name, best) < best / 2


def gains(medians: Mapping[str, ByStreams]) -> dict[int, float]:
    """By number of streams: Axon's tokens/s with speculative decoding against without; empty if one is missing."""
    if not {AXON, PLAIN} <= medians.keys():
        return {}
    return {num: float(f"{row[RATE] / medians[PLAIN][num][RATE]:.3g}") for num, row in medians[AXON].items()}


def table(medians: Mapping[str, ByStreams]) -> str:
    """Markdown, the quickest first for each number of streams."""
    lines = [
        "| streams | engine | tokens/s | TTFT p50 ms | TPOT p50 ms | CPU ms a token | drafts accepted "
        "| tokens/s against the best peer | TTFT against the best peer |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    soonest = best_peers(medians, TTFT)
    for num_streams, best in best_peers(medians).items():
        rate = medians[best.name][num_streams][RATE]
        ttft_ms = medians[soonest[num_streams].name][num_streams][TTFT]
        for name in sorted(medians, key=lambda name: -medians[name][num_streams][RATE]):
            row = medians[name][num_streams]
            cells = [shown(row[figure]) for figure in (RATE, TTFT, "tpot_p50_ms", "cpu_ms_per_token")]
            cells += [_accepted(row), f"{row[RATE] / rate:.2f}×", f"{row[TTFT] / ttft_ms:.2f}×"]
            lines.append(f"| {num_streams} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _accepted(row: Figures) -> str:
    if "acceptance" not in row:
        return "–"
    if not row["drafts_per_token"]:
        return "none made"
    return f"{row['acceptance']:.0%} of {row['drafts_per_token']:.2g} a token"


def chart(medians: Mapping[str, ByStreams], title: str) -> str:
    """Bars of tokens/s by number of streams."""
    groups = {
        f"{num} stream{'s' * (num > 1)}": {name: by_streams[num][RATE] for name, by_streams in medians.items()}
        for num in medians[AXON]
    }
    return bar_chart(title, y_label="tokens/s", groups=groups)
