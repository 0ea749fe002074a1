"""What a worker says to its engine and what the engine answers. Token ids only; a tenant is an opaque id."""

from dataclasses import dataclass, field

from axon.domain.sampling import Sampling


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """Run a sequence: its prompt, and the tokens that earlier attempts have emitted already."""

    id: str
    prompt_ids: list[int]
    output_ids: list[int] = field(default_factory=list)
    """Tokens already emitted (a replay); the next token sampled has position len(output_ids)."""
    sampling: Sampling
    seed: int
    choice: int = 0
    tenant: str = ""
    weight: float = 1.0
    """The tenant's share, measured against the others'."""
    kv_share: float = 1.0
    """How much of the blocks the tenant's sequences may hold together, more than 0."""
    reserved: float = 0.0
    """Share of the slots that is the tenant's whenever it asks."""
    priority: int = 0
    """A higher one goes before every lower one."""
    deadline: float | None = None
    """Unix time after which nobody waits for it: it is then given up, with ``deadline_exceeded``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Abort:
    """Forget these sequences and free their blocks; unknown ids are ignored."""

    ids: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """The engine's first word: what it runs and how much of it at once."""

    kernel: str
    """Identifies the arithmetic, e.g. ``torch-float32``; part of a deployment's version."""
    max_model_len: int
    max_sequences: int
    num_blocks: int
    block_size: int
    eos_ids: list[int] = field(default_factory=list)
    """The model's own end tokens, so that a worker can tell whether a replay has ended already."""


@dataclass(frozen=True, slots=True)
class Emitted:
    """One token of one sequence. ``finish`` is ``stop`` or ``length`` on the last one, else None."""

    id: str
    token: int
    finish: str | None = None
    logprob: float | None = None
    """Where the sampling asks for it: the model's own, before penalties and temperature."""
    top: list[tuple[int, float]] = field(default_factory=list)
    """Token ids and logprobs of the most likely tokens, most likely first."""
    cached: int = 0
    """On a sequence's first token: how many tokens of its prompt came from cached blocks."""


@dataclass(frozen=True, slots=True)
class Scored:
    """How likely the model found the next tokens of a sequence's prompt, from its second on, in their order."""

    id: str
    logprobs: list[tuple[float, list[tuple[int, float]]]]
    """Of each token, and of the most likely ones in its place."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A sequence the engine cannot run; ``code`` is an error code of ours, e.g. context_length_exceeded."""

    id: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Gpu:
    """How busy a GPU is and how much of its memory is taken, by whomever."""

    index: int
    utilization: float
    """Share of the last sample period in which something ran, 0 to 1."""
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """The engine's gauges after a step."""

    num_running: int = 0
    num_waiting: int = 0
    batch_tokens: int = 0
    """Tokens computed by this step, prefill and decode together."""
    blocks_free: int = 0
    blocks_used: int = 0
    blocks_cached: int = 0
    preemptions: int = 0
    """Sequences parked because blocks ran out, since the start."""
    yielded: int = 0
    """Sequences parked because their slot was another's part, since the start."""
    running_by_priority: dict[int, int] = field(default_factory=dict)
    """How many run of each priority; one that none has is missing."""
    drafted: int = 0
    """Guesses at tokens since the start, and those that were right."""
    accepted: int = 0
    step_s: float = 0.0
    sent_bytes: int = 0
    """Since the start, to the other ranks of the group; see ``axon.engine.parallel.traffic``."""
    gpus: list[Gpu] = field(default_factory=list)
    """Of this host's ranks; empty where nobody can tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutput:
    """What one step produced, for all its sequences."""

    emitted: list[Emitted] = field(default_factory=list)
    scored: list[Scored] = field(default_factory=list)
    """To be taken in before what was emitted."""
    refused: list[Refused] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    """Sequences that had no place in the step: blocks were lacking, or their turn has not come yet."""
    counters: Counters = field(default_factory=Counters)
