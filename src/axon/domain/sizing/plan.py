"""What a load needs of each part: replicas, memory, gateways, services. Pure: the result depends on the load alone."""

import math
from dataclasses import dataclass

from axon.domain.sizing import figure as figures
from axon.domain.sizing.device import Device
from axon.domain.sizing.engine import EngineCost, cpu_cost, gpu_cost
from axon.domain.sizing.figure import Certainty, Figure
from axon.domain.sizing.shape import KNOWN, Shape
from axon.errors import InvalidInput

_WEIGHTS_MEASURED = KNOWN["smollm2-135m"].weight_bytes(int8=True)
"""Bytes of weights within ``CPU_ENGINE_BYTES``, by the shape of the model that was measured."""

_MOST = 1_000_000_000_000
"""Of tokens or streams; beyond it nothing could be computed any more."""


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
    device: Device = Device.H200

    @property
    def kept_tokens(self) -> float:
        return self.context if self.context is not None else self.prompt_tokens + self.answer_tokens

    @property
    def turns_per_s(self) -> float:
        """Turns that begin each second: tokens of all answers over those of one."""
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
    cost = gpu_cost(shape) if load.device is Device.H200 else cpu_cost(shape)
    replicas = _replicas(load, cost)
    return Plan(
        parts=(
            replicas,
            *_devices(load, cost, replicas),
            *_memory(load, cost, replicas.number),
            *_gateways(load),
            *_services(load),
        )
    )


def _check(shape: Shape, load: Load) -> None:
    positive = {
        "--tokens-per-s": load.tokens_per_s,
        "--streams": load.streams,
        "--answer-tokens": load.answer_tokens,
        "--context": load.kept_tokens,
    }
    for name, value in positive.items():
        if value > _MOST:
            raise InvalidInput(f"{name} is more than {_MOST:,}: no fleet has that.")
        if not value > 0:
            raise InvalidInput(f"{name} is {value:g}: it must be more than 0.")
    if not 0 <= load.prompt_tokens <= _MOST:
        raise InvalidInput(f"--prompt-tokens is {load.prompt_tokens:g}: it must be 0 or more, and at most {_MOST:,}.")
    if load.answer_tokens < 1:
        raise InvalidInput(f"--answer-tokens is {load.answer_tokens:g}: an answer has 1 or more.")
    if load.kept_tokens > shape.max_context:
        raise InvalidInput(
            f"{load.kept_tokens:,.0f} tokens do not fit into the context of {shape.name}: it has {shape.max_context:,}."
        )


def _replicas(load: Load, cost: EngineCost) -> Part:
    """The largest of three needs, and the spare ones."""
    busy = load.turns_per_s * cost.request_s(load.prompt_tokens, load.answer_tokens, load.kept_tokens)
    needs = {
        "computing": math.ceil(busy / figures.USED.value),
        "slots": math.ceil(load.streams / cost.slots),
        "KV memory": _by_memory(load, cost),
    }
    most = max(needs, key=lambda name: needs[name])
    spare, least = int(figures.SPARE_REPLICAS.value), int(figures.LEAST.value)
    why = f"{', '.join(f'{name} {need}' for name, need in needs.items())}; and {spare} spare. The bound is {most}"
    if load.kept_tokens > cost.longest_context:
        why += f"; contexts of more than {cost.longest_context:,.0f} tokens were not measured here, and may need more"
    slots = figures.MAX_SEQUENCES if load.device is Device.H200 else figures.CPU_SLOTS
    return Part(
        name="replicas",
        number=max(needs[most] + spare, least),
        unit="replicas",
        why=why,
        certainty=_at_best_computed(cost.certainty_at(load.kept_tokens)),
        sources=(*cost.sources, slots, figures.USED, figures.SPARE_REPLICAS, figures.LEAST),
    )


def _by_memory(load: Load, cost: EngineCost) -> int:
    if math.isinf(cost.kv_room):
        return 1
    held = math.floor(cost.kv_room / (load.kept_tokens * cost.kv_token_bytes))
    if held < 1:
        raise InvalidInput(f"{load.kept_tokens:,.0f} tokens of context do not fit into a replica's KV memory.")
    return math.ceil(load.streams / held)


def _devices(load: Load, cost: EngineCost, replicas: Part) -> list[Part]:
    if load.device is Device.CPU:
        cores = Part(
            name="worker cores",
            number=2 * replicas.number,
            unit="cores",
            why="two cores for each replica, as measured",
            certainty=replicas.certainty,
            sources=(figures.CPU_TOKENS,),
        )
        return [cores]
    return [
        Part(
            name="GPUs",
            number=replicas.number * cost.num_ranks,
            unit="H200",
            why=f"{cost.num_ranks} for each replica",
            certainty=replicas.certainty,
            sources=(),
        ),
        Part(
            name="worker cores",
            number=math.ceil(max(2.0 * replicas.number, load.tokens_per_s * figures.WORKER_TOKEN.value)),
            unit="cores",
            why="one for the worker and one for its engine, or what tokens need",
            certainty=replicas.certainty,
            sources=(figures.WORKER_TOKEN,),
        ),
    ]


def _memory(load: Load, cost: EngineCost, replicas: float) -> list[Part]:
    kv = cost.kv_token_bytes * load.kept_tokens * load.streams
    return [
        Part(
            name="weights",
            number=cost.weight_bytes / 1e9,
            unit="GB a replica",
            why="by the model's shape",
            certainty=Certainty.COMPUTED,
            sources=(),
        ),
        Part(
            name="KV in use",
            number=kv / 1e9,
            unit="GB in all",
            why=f"{cost.kv_token_bytes:,.0f} bytes a token, by the model's shape",
            certainty=Certainty.COMPUTED,
            sources=(),
        ),
        _gpu_host(cost) if load.device is Device.H200 else _cpu_host(cost, kv / replicas),
    ]


def _gpu_host(cost: EngineCost) -> Part:
    return Part(
        name="host memory",
        number=(cost.weight_bytes + 2 * figures.PROCESS_BYTES.value) / 1e9,
        unit="GB a replica",
        why="the weights once in the page cache, and the processes",
        certainty=Certainty.ASSUMED,
        sources=(figures.PROCESS_BYTES,),
    )


def _cpu_host(cost: EngineCost, kv_bytes: float) -> Part:
    more_weights = max(0.0, cost.weight_bytes - _WEIGHTS_MEASURED)
    each = figures.CPU_ENGINE_BYTES.value + more_weights + figures.PROCESS_BYTES.value + kv_bytes
    return Part(
        name="host memory",
        number=each / 1e9,
        unit="GB a replica",
        why="an engine as measured, more weights, KV blocks, and the worker",
        certainty=Certainty.COMPUTED,
        sources=(figures.CPU_ENGINE_BYTES, figures.PROCESS_BYTES),
    )


def _gateways(load: Load) -> list[Part]:
    busy = load.tokens_per_s / figures.GATEWAY_TOKENS.value + load.turns_per_s * figures.REQUEST_CPU.value
    busy += load.streams * figures.SILENT_STREAM_CPU.value
    least = int(figures.LEAST.value)
    number = max(math.ceil(busy / figures.USED.value), least)
    # Every gateway must hold the streams of one that is lost.
    memory = figures.PROCESS_BYTES.value * number + 2 * load.streams * figures.STREAM_BYTES.value
    return [
        Part(
            name="gateways",
            number=number,
            unit="processes of one core",
            why=f"{busy:.2f} cores of work, used to {figures.USED.value:.0%}; at least {least}",
            certainty=Certainty.COMPUTED,
            sources=(
                *(figures.GATEWAY_TOKENS, figures.REQUEST_CPU, figures.SILENT_STREAM_CPU),
                *(figures.USED, figures.LEAST),
            ),
        ),
        Part(
            name="gateway memory",
            number=memory / 1e9,
            unit="GB in all",
            why="twice its streams, so that others can take over, and the processes",
            certainty=Certainty.COMPUTED,
            sources=(figures.STREAM_BYTES, figures.PROCESS_BYTES),
        ),
    ]


def _services(load: Load) -> list[Part]:
    rabbitmq = math.ceil(load.turns_per_s / figures.RABBITMQ_TURNS.value)
    postgresql = math.ceil(load.turns_per_s / figures.POSTGRESQL_TURNS.value)
    turns = f"{load.turns_per_s:,.1f} turns/s"
    return [
        Part(
            name="Redis shards",
            number=math.ceil(load.tokens_per_s * figures.REDIS_TOKEN.value),
            unit="shards of one core, each with a replica",
            why=f"{load.tokens_per_s:,.0f} tokens/s",
            certainty=Certainty.COMPUTED,
            sources=(figures.REDIS_TOKEN,),
        ),
        Part(
            name="RabbitMQ clusters",
            number=rabbitmq,
            unit="clusters of three nodes",
            why=turns,
            certainty=_measured_if_one(rabbitmq),
            sources=(figures.RABBITMQ_TURNS,),
        ),
        Part(
            name="PostgreSQL primaries",
            number=postgresql,
            unit="primaries, each with a synchronous standby",
            why=turns,
            certainty=_measured_if_one(postgresql),
            sources=(figures.POSTGRESQL_TURNS,),
        ),
        Part(
            name="cells",
            number=max(rabbitmq, postgresql),
            unit="whole Axons that share nothing",
            why="the services of one carry no more; see docs/scale.md",
            certainty=Certainty.COMPUTED,
            sources=(figures.RABBITMQ_TURNS, figures.POSTGRESQL_TURNS),
        ),
    ]


def _measured_if_one(number: int) -> Certainty:
    return Certainty.MEASURED if number == 1 else Certainty.COMPUTED


def _at_best_computed(certainty: Certainty) -> Certainty:
    """A number of replicas follows from an engine's speed; even where that was measured, the number is computed."""
    return Certainty.COMPUTED if certainty is Certainty.MEASURED else certainty
