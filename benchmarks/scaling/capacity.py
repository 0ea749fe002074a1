"""What a number of streams needs, computed from measured figures: the table of docs/scale.md. Measures nothing.

python -m benchmarks.scaling.capacity --streams 1000000
"""

import argparse
from dataclasses import dataclass, replace
from math import ceil

from benchmarks.scaling.engine_model import H200_8B


@dataclass(frozen=True, slots=True, kw_only=True)
class Carries:
    """What one part carries, as it was measured on a Neoverse-N1 (two cores); sources in docs/scale.md."""

    gateway_tokens_per_s: float = 24_200.0
    """Tokens to readers for each second of a gateway's CPU."""
    request_cpu_s: float = 0.0025
    """CPU of a whole server for a request without its tokens: more than the gateway's part of it."""
    redis_tokens_per_s: float = 1 / 19e-6
    """Tokens appended for each second of Redis's CPU, 16 jobs in a call."""
    rabbitmq_turns_per_s: float = 911.0
    """Turns accepted, journal and queue confirmed, with all services on two cores."""
    postgresql_turns_per_s: float = 1_574.0
    """Turns that the persister stores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Streams that are open at once, and their turns."""

    streams: float = 1e6
    prompt: float = 1000.0
    answer: float = 250.0
    token_s: float = 0.05

    @property
    def tokens_per_s(self) -> float:
        """Answer tokens of all streams."""
        return self.streams / self.token_s

    @property
    def turns_per_s(self) -> float:
        """Turns that begin, by Little's law."""
        return self.tokens_per_s / self.answer


def needs(traffic: Traffic, carries: Carries | None = None, *, slots: int = 256, used: float = 0.9) -> dict[str, float]:
    """How many of each part carry the traffic. GPUs are used to ``used`` of their throughput."""
    carries = carries or Carries()
    turns, tokens = traffic.turns_per_s, traffic.tokens_per_s
    engine = replace(H200_8B, slots=slots)
    return {
        "turns per second": turns,
        "answer tokens per second": tokens,
        "H200 (8B, bfloat16)": ceil(turns * engine.seconds(traffic.prompt, traffic.answer) / used),
        "gateway cores": ceil(tokens / carries.gateway_tokens_per_s + turns * carries.request_cpu_s),
        "Redis shards": ceil(tokens / carries.redis_tokens_per_s),
        "RabbitMQ clusters": ceil(turns / carries.rabbitmq_turns_per_s),
        "PostgreSQL primaries": ceil(turns / carries.postgresql_turns_per_s),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=float, default=1e6)
    options = parser.parse_args()
    cell = Carries().rabbitmq_turns_per_s * Traffic().answer * Traffic().token_s
    columns = {f"{options.streams:,.0f} streams": options.streams, f"a cell of {cell:,.0f}": cell, "10,000": 10_000.0}
    found = {name: needs(Traffic(streams=streams)) for name, streams in columns.items()}
    print("| | " + " | ".join(columns) + " |\n|---|" + "---|" * len(columns))
    for part in next(iter(found.values())):
        print(f"| {part} | " + " | ".join(f"{each[part]:,.0f}" for each in found.values()) + " |")


if __name__ == "__main__":
    main()
