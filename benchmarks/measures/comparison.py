"""Several engines' figures side by side: ratios to the best peer, a table, a chart. Pure; measures nothing."""

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.measures.figures import Figures, shown
from benchmarks.measures.svg import bar_chart

AXON = "axon"
RATE = "tokens_per_s"

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
        peers = {name: by_streams[num_streams][figure] for name, by_streams in medians.items() if name != AXON}
        name = best(peers, key=lambda each: peers[each])
        found[num_streams] = Best(name, float(f"{own[figure] / peers[name]:.3g}"))
    return found


def is_far_behind(name: str, rates: Mapping[str, float]) -> bool:
    """Whether a peer is slower than half the best one, so that more rounds of it would change no ratio."""
    best = max((rate for each, rate in rates.items() if each != AXON), default=0.0)
    return name != AXON and rates.get(name, best) < best / 2


def table(medians: Mapping[str, ByStreams]) -> str:
    """Markdown, the quickest first for each number of streams."""
    lines = [
        "| streams | engine | tokens/s | TTFT p50 ms | TPOT p50 ms | CPU ms a token | against the best peer |",
        "|---|---|---|---|---|---|---|",
    ]
    for num_streams, best in best_peers(medians).items():
        top = medians[best.name][num_streams][RATE]
        for name in sorted(medians, key=lambda name: -medians[name][num_streams][RATE]):
            row = medians[name][num_streams]
            cells = [shown(row[figure]) for figure in (RATE, "ttft_p50_ms", "tpot_p50_ms", "cpu_ms_per_token")]
            lines.append(f"| {num_streams} | {name} | {' | '.join(cells)} | {row[RATE] / top:.2f}× |")
    return "\n".join(lines)


def chart(medians: Mapping[str, ByStreams]) -> str:
    """Bars of tokens/s by number of streams."""
    groups = {
        f"{num} stream{'s' * (num > 1)}": {name: by_streams[num][RATE] for name, by_streams in medians.items()}
        for num in medians[AXON]
    }
    return bar_chart("128 prompt words, 128 tokens each, over HTTP", y_label="tokens/s", groups=groups)
