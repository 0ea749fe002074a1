"""Metrics of turns: how they ended, their tokens and their times. Gateways and workers report them."""

from axon.telemetry.declared import buckets
from axon.telemetry.declared.declaring import TURN, Declarations


class TurnMetrics:
    """Turns of generating models."""

    def __init__(self, make: Declarations) -> None:
        make.about("Turns")
        self._declare_counts(make)
        self._declare_times(make)

    def _declare_counts(self, make: Declarations) -> None:
        self.ended = make.counter(
            "axon_turns_total",
            "Turns that a worker has ended, by outcome: completed, failed, cancelled, expired.",
            *(*TURN, "outcome"),
            unit="turns",
        )
        self.tokens = make.counter(
            "axon_tokens_total", "Tokens by kind: prompt, cached, output, replayed or wasted.", "kind", "tenant"
        )
        self.model_tokens = make.counter(
            "axon_model_tokens_total",
            "Tokens of ended turns by model and kind: prompt, cached, output, replayed or wasted.",
            *("kind", *TURN),
        )
        self.cancelled = make.counter(
            "axon_cancelled_total",
            "Turns that were cancelled: asked for, their client left, absent for too long, or its key revoked.",
            "cause",
            unit="turns",
            starts=[(cause,) for cause in ("asked", "left", "absent", "key_revoked")],
        )
        self.paced = make.gauge(
            "axon_paced_requests",
            "Running requests whose tokens come at the rate of their tenant's bucket.",
            "model",
            unit="turns",
            role="detail",
        )
        self.waiting = make.gauge(
            "axon_waiting_turns",
            "Turns of all gateways that wait for a deployment while it starts.",
            "model",
            unit="turns",
            together="max",
        )
        self.cold = make.counter(
            "axon_cold_turns_total",
            "Turns accepted while their version had no worker, which wait for one.",
            "model",
            unit="turns",
        )
        self.scaling = make.counter(
            "axon_scaling_turns_total",
            "Turns accepted by a full pool that would have been refused if it could not get more workers.",
            "model",
            unit="turns",
            role="detail",
        )
        self.fallbacks = make.counter(
            "axon_fallbacks_total",
            "Turns that a fallback answers for the asked deployment.",
            *("from", "to"),
            unit="turns",
        )

    def _declare_times(self, make: Declarations) -> None:
        self.time_to_first_token = make.histogram(
            "axon_time_to_first_token_seconds",
            "From a request's arrival to its first token, of streams: an answer in one piece has none.",
            buckets.FIRST_TOKEN,
            *TURN,
        )
        self.inter_token_latency = make.histogram(
            "axon_inter_token_latency_seconds", "Between two tokens of one stream.", buckets.PER_TOKEN, *TURN
        )
        self.queue_wait = make.histogram(
            "axon_queue_wait_seconds", "From a job's publishing to a worker taking it.", buckets.FIRST_TOKEN, *TURN
        )
        self.prefill = make.histogram(
            "axon_prefill_seconds", "From a worker taking a job to its first token.", buckets.FIRST_TOKEN, *TURN
        )
        self.decode = make.histogram(
            "axon_decode_seconds", "From a job's first token to its end.", buckets.DURATION, *TURN
        )
        self.duration = make.histogram(
            "axon_turn_duration_seconds", "From a turn's acceptance to its end.", buckets.DURATION, *TURN
        )
        self.slot_wait = make.histogram(
            "axon_slot_wait_seconds",
            "Time of a turn in which no step of the engine had a place for it.",
            buckets.FIRST_TOKEN,
            *TURN,
            role="detail",
        )
        self.pacing = make.histogram(
            "axon_pacing_seconds",
            "Time of a turn in which it was held back to its tenant's rate.",
            buckets.FIRST_TOKEN,
            *TURN,
            role="detail",
        )
