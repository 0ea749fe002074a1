"""The service level objectives of Axon; docs/slo.md explains each number."""

from axon.monitoring.objective import Objective

FIRST_TOKEN_S = 2.0
GAP_S = 0.05
UTILIZATION = 0.7
"""SLO 2.1 and 2.2: the share of the slots, and of a GPU's time, that is used while turns wait."""


def _share(bad: str, of: str) -> str:
    """Bad events over all; no series while there are none at all."""
    return f"(({bad}) or 0 * ({of})) / (({of}) > 0)"


def _slower(histogram: str, bound: float, by: str = "") -> str:
    """Share of a histogram's events that took longer than one of its bounds."""
    of = f"sum by ({by}) " if by else "sum"
    good = f'{of}(rate({histogram}_bucket{{le="{bound}"}}[$window]))'
    return f"1 - {good} / ({of}(rate({histogram}_count[$window])) > 0)"


OBJECTIVES = (
    Objective(
        slo="availability",
        alert="AxonAvailabilityBurn",
        target=0.999,
        bad=_share(
            'sum(rate(axon_requests_total{outcome=~"5.."}[$window]))', "sum(rate(axon_requests_total[$window]))"
        ),
        miss="requests end with an error of the server",
        meaning="Clients get answers with a status of 500 or more.",
    ),
    Objective(
        slo="turns",
        alert="AxonTurnFailureBurn",
        target=0.999,
        bad=_share('sum(rate(axon_turns_total{outcome="failed"}[$window]))', "sum(rate(axon_turns_total[$window]))"),
        miss="accepted turns fail",
        meaning="Turns fail after they were accepted, streams in the middle of an answer among them.",
    ),
    Objective(
        slo="first_token",
        alert="AxonFirstTokenBurn",
        target=0.95,
        bad=_slower("axon_time_to_first_token_seconds", FIRST_TOKEN_S),
        miss=f"first tokens take longer than {FIRST_TOKEN_S:g} s",
        meaning="Users wait for their answers to begin.",
    ),
    Objective(
        slo="token_gap",
        alert="AxonTokenGapBurn",
        target=0.99,
        bad=_slower("axon_inter_token_latency_seconds", GAP_S, "class"),
        by=("class",),
        miss=f"gaps between tokens are longer than {GAP_S * 1000:g} ms",
        meaning="Streams of this class come more slowly than they are promised.",
    ),
)
