"""What a load needs of each part: replicas, memory, gateways, services. Pure: the result depends on the load alone."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from axon.domain.sizing import figure as figures
from axon.domain.sizing.engine import EngineCost, cpu_cost, gpu_cost
from axon.domain.sizing.figure import Certainty, Figure
from axon.domain.sizing.shape import KNOWN, Shape
from axon.errors import InvalidInput

_WEIGHTS_MEASURED = KNOWN["smollm2-135m"].weight_bytes(int8=True)
"""Bytes of weights within ``CPU_ENGINE_BYTES``, by the shape of the model that was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is to be served at once."""

    tokens_per_s: float
    """Answer tokens of all streams together."""
    streams: int
    """Answers that are under way at once."""
    prompt_tokens: float = 512.0
    answer_tokens: float = 256.0
    context: float | None = None
    """Tokens that a stream keeps in KV blocks; None for its prompt and answer."""
    gpu: bool = True
    fp8: bool = False
    """On a GPU, in fp8 and not in bfloat16."""

    @property
    def kept_tokens(self) -> float:
        return self.context if self.context is not None else self.prompt_tokens + self.answer_tokens

    @property
    def turns_per_s(self) -> float:
        """Turns that begin each second, by Little's law."""
        return self.tokens_per_s / self.answer_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """How many of one thing are needed, and by what."""

    name: str
    number: float
    unit: str
    why: str
    certainty: Certainty
    sources: tuple[Figure, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that a load needs, in the order in which it is read."""

    parts: tuple[Part, ...]
    unknown: tuple[str, ...] = (
        "memory of Redis: not measured; it keeps an answer's tokens for sessions.retention_s after its end",
        "growth of PostgreSQL: depends on what tenants store; watch its disk",
        "time to the first token: see docs/scaling.md for how many replicas keep it",
    )
    """What it does not answer."""

    def part(self, name: str) -> Part:
        return next(part for part in self.parts if part.name == name)


def plan(shape: Shape, load: Load) -> Plan:
    """The plan for one model; raises ``InvalidInput`` for a load that makes no sense or never fits."""
    _check(shape, load)
    cost = gpu_cost(shape, fp8=load.fp8) if load.gpu else cpu_cost(shape)
    replicas = _replicas(load, cost)
    return Plan(
        parts=(
            replicas,
            *_devices(load, cost, replicas.number),
            *_memory(load, cost, replicas.number),
            *_gateways(load),
            *_services(load),
        )
    )


def _check(shape: Shape, load: Load) -> None:
    wrong = {
        "--tokens-per-s": load.tokens_per_s,
        "--streams": load.streams,
        "--answer-tokens": load.answer_tokens,
        "--context": load.kept_tokens,
    }
    for name, value in wrong.items():
        if not (value > 0 and math.isfinite(value)):
            raise InvalidInput(f"{name} is {value:g}: it must be more than 0.")
    if not (load.prompt_tokens >= 0 and math.isfinite(load.prompt_tokens)):
        raise InvalidInput(f"--prompt-tokens is {load.prompt_tokens:g}: it must be 0 or more.")
    if load.kept_tokens > shape.max_context:
        raise InvalidInput(
            f"{load.kept_tokens:,.0f} tokens do not fit into the context of {shape.name}: it has {shape.max_context:,}."
        )


def _replicas(load: Load, cost: EngineCost) -> Part:
    """The largest of three needs, and a spare."""
    busy = load.turns_per_s * cost.request_s(load.prompt_tokens, load.answer_tokens, load.kept_tokens)
    needs = {
        "computing": math.ceil(busy / figures.USED.value),
        "slots": math.ceil(load.streams / cost.slots),
        "KV memory": _by_memory(load, cost),
    }
    most = max(needs, key=lambda name: needs[name])
    number = max(needs[most] + int(figures.SPARE_REPLICAS.value), int(figures.LEAST.value))
    slots = figures.MAX_SEQUENCES if load.gpu else figures.CPU_SLOTS
    return Part(
        name="replicas",
        number=number,
        unit="replicas",
        why=f"{', '.join(f'{name} {need}' for name, need in needs.items())}; and 1 spare. The bound is {most}",
        certainty=_at_best_computed(cost.certainty),
        sources=(*cost.sources, slots, figures.USED, figures.SPARE_REPLICAS),
    )


def _by_memory(load: Load, cost: EngineCost) -> int:
    if math.isinf(cost.kv_room):
        return 1
    held = math.floor(cost.kv_room / (load.kept_tokens * cost.kv_token_bytes))
    if held < 1:
        raise InvalidInput(f"{load.kept_tokens:,.0f} tokens of context do not fit into a replica's KV memory.")
    return math.ceil(load.streams / held)


def _devices(load: Load, cost: EngineCost, replicas: float) -> list[Part]:
    tokens = (figures.WORKER_TOKEN,)
    worker_s = load.tokens_per_s * figures.WORKER_TOKEN.value
    if not load.gpu:
        why = "two cores for each replica, as measured"
        return [_part("worker cores", 2 * replicas, "cores", why, Certainty.COMPUTED, (figures.CPU_TOKENS,))]
    ranks = f"{cost.num_ranks} for each replica"
    found = [_part("GPUs", replicas * cost.num_ranks, "H200", ranks, _at_best_computed(cost.certainty), ())]
    cores = math.ceil(max(2.0 * replicas, worker_s))
    why = "one for the worker and one for its engine, or what tokens need"
    return [*found, _part("worker cores", cores, "cores", why, Certainty.COMPUTED, tokens)]


def _memory(load: Load, cost: EngineCost, replicas: float) -> list[Part]:
    kv = cost.kv_token_bytes * load.kept_tokens * load.streams
    formula = f"{cost.kv_token_bytes:,.0f} bytes a token, by the model's shape"
    found = [
        _part("weights", cost.weight_bytes / 1e9, "GB a replica", "by the model's shape", Certainty.COMPUTED, ()),
        _part("KV in use", kv / 1e9, "GB in all", formula, Certainty.COMPUTED, ()),
    ]
    if load.gpu:
        why = "the weights once in the page cache, and the processes"
        each = cost.weight_bytes + 2 * figures.PROCESS_BYTES.value
        return [
            *found,
            _part("host memory", each / 1e9, "GB a replica", why, Certainty.ASSUMED, (figures.PROCESS_BYTES,)),
        ]
    more_weights = max(0.0, cost.weight_bytes - _WEIGHTS_MEASURED)
    each = figures.CPU_ENGINE_BYTES.value + more_weights + figures.PROCESS_BYTES.value + kv / replicas
    why = "an engine as measured, more weights, KV blocks, and the worker"
    sources = (figures.CPU_ENGINE_BYTES, figures.PROCESS_BYTES)
    return [*found, _part("host memory", each / 1e9, "GB a replica", why, Certainty.COMPUTED, sources)]


def _gateways(load: Load) -> list[Part]:
    busy = load.tokens_per_s / figures.GATEWAY_TOKENS.value + load.turns_per_s * figures.REQUEST_CPU.value
    busy += load.streams * figures.SILENT_STREAM_CPU.value
    number = max(math.ceil(busy / figures.USED.value), int(figures.LEAST.value))
    # Every gateway must hold the streams of one that is lost.
    memory = figures.PROCESS_BYTES.value * number + 2 * load.streams * figures.STREAM_BYTES.value
    return [
        _part(
            "gateways",
            number,
            "processes of one core",
            f"{busy:.2f} cores of work, used to {figures.USED.value:.0%}; at least two",
            Certainty.COMPUTED,
            (figures.GATEWAY_TOKENS, figures.REQUEST_CPU, figures.SILENT_STREAM_CPU, figures.USED, figures.LEAST),
        ),
        _part(
            "gateway memory",
            memory / 1e9,
            "GB in all",
            "twice its streams, so that others can take over, and the processes",
            Certainty.COMPUTED,
            (figures.STREAM_BYTES, figures.PROCESS_BYTES),
        ),
    ]


def _services(load: Load) -> list[Part]:
    redis = math.ceil(load.tokens_per_s * figures.REDIS_TOKEN.value)
    rabbitmq = math.ceil(load.turns_per_s / figures.RABBITMQ_TURNS.value)
    postgresql = math.ceil(load.turns_per_s / figures.POSTGRESQL_TURNS.value)
    measured, computed = Certainty.MEASURED, Certainty.COMPUTED
    cells = max(rabbitmq, postgresql)
    return [
        _part(
            "Redis shards",
            redis,
            "shards of one core, each with a replica",
            f"{load.tokens_per_s:,.0f} tokens/s",
            computed,
            (figures.REDIS_TOKEN,),
        ),
        _part(
            "RabbitMQ clusters",
            rabbitmq,
            "clusters of three nodes",
            f"{load.turns_per_s:,.1f} turns/s",
            measured if rabbitmq == 1 else computed,
            (figures.RABBITMQ_TURNS,),
        ),
        _part(
            "PostgreSQL primaries",
            postgresql,
            "primaries, each with a synchronous standby",
            f"{load.turns_per_s:,.1f} turns/s",
            measured if postgresql == 1 else computed,
            (figures.POSTGRESQL_TURNS,),
        ),
        _part(
            "cells",
            cells,
            "whole Axons that share nothing",
            "the services of one carry no more; see docs/scale.md",
            computed,
            (figures.RABBITMQ_TURNS, figures.POSTGRESQL_TURNS),
        ),
    ]


def _at_best_computed(certainty: Certainty) -> Certainty:
    """A number of replicas follows from an engine's speed; even where that was measured, the number is computed."""
    return Certainty.COMPUTED if certainty is Certainty.MEASURED else certainty


def _part(name: str, number: float, unit: str, why: str, certainty: Certainty, sources: Sequence[Figure]) -> Part:
    return Part(name=name, number=number, unit=unit, why=why, certainty=certainty, sources=tuple(sources))
