"""The messages between a worker and its engine process. Token ids only; a tenant is an opaque id."""

from dataclasses import dataclass, field

from axon.domain.sampling import Sampling


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """Run a sequence: its prompt, and the tokens that earlier attempts have emitted already."""

    id: str
    prompt_ids: list[int]
    second_start: int = 0
    """Index in the prompt at which the second text of a pair begins, for a cross-encoder; 0 for a single text."""
    output_ids: list[int] = field(default_factory=list)
    """Tokens already emitted (a replay); the next token sampled has position len(output_ids)."""
    sampling: Sampling
    seed: int
    choice: int = 0
    tenant: str = ""
    weight: float = 1.0
    """The tenant's weight relative to other tenants'."""
    kv_share: float = 1.0
    """Fraction of the blocks that the tenant's sequences may hold together, more than 0."""
    reserved: float = 0.0
    """Fraction of the slots reserved for the tenant."""
    priority: int = 0
    """The sequence's tier; a higher number goes before every lower one."""
    deadline: float | None = None
    """Unix time in seconds after which the engine refuses it with ``deadline_exceeded``."""
    interrupted: bool = False
    """Its reader waits in the middle of the answer: the engine that ran it before, here or elsewhere, is gone."""
    session: str = ""
    """The session whose text it is, or its turn without one, an opaque id: copies of its blocks outside the device are
    erased with it."""
    forget: bool = False
    """Whether nothing of it may be kept outside the device."""
    adapter: str = ""
    """Digest of the LoRA adapter that it is computed with; empty for the model itself."""
    adapter_folder: str = ""
    """Folder of that adapter's files on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Abort:
    """Forget these sequences and free their blocks; unknown ids are ignored."""

    ids: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Erase:
    """These sessions were erased: no copy of their blocks may be found any more; unknown ones are ignored."""

    sessions: list[str]


@dataclass(frozen=True, slots=True)
class Record:
    """Record a profile of the engine's process beside its steps; answered by ``Recorded`` under the same number."""

    id: int
    kind: str
    """``cpu``, ``memory`` or ``steps``."""
    seconds: float


@dataclass(frozen=True, slots=True)
class StopRecord:
    """End the profile of this number now: nobody waits for it any more."""

    id: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """A profile, packed (see ``axon.profiling.profile``), or why there is none."""

    id: int
    packed: bytes = b""
    problem: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """The engine's first message: what it runs and how much of it at once."""

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
    """The model's own log probability, before penalties and temperature; only where the sampling asks for it."""
    top: list[tuple[int, float]] = field(default_factory=list)
    """Ids and log probabilities of the most likely tokens, most likely first."""
    cached: int = 0
    """On a sequence's first token: how many tokens of its prompt came from cached blocks."""


@dataclass(frozen=True, slots=True)
class Scored:
    """Log probabilities of the next tokens of a sequence's prompt, from its second token on, in order."""

    id: str
    logprobs: list[tuple[float, int, list[tuple[int, float]]]]
    """For each token its log probability, its rank among all tokens from 1, and ids and log probabilities of the most
    likely ones in its place."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """The vector of one sequence, as float32 numbers (little-endian); with it the sequence has ended."""

    id: str
    vector: bytes


@dataclass(frozen=True, slots=True)
class Refused:
    """A sequence that the engine cannot run; ``code`` is one of Axon's error codes, e.g. context_length_exceeded."""

    id: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Gpu:
    """Utilisation and used memory of a GPU, over all its processes."""

    index: int
    utilization: float
    """Fraction of the last sample period in which a kernel ran, 0 to 1."""
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShelfCounters:
    """What an engine keeps of KV blocks outside its device, and has moved since its start."""

    host_bytes: int = 0
    file_bytes: int = 0
    saved_bytes: int = 0
    """From the device to the host's memory."""
    loaded_bytes: int = 0
    """From the host's memory to the device."""
    written_bytes: int = 0
    read_bytes: int = 0
    loaded_tokens: int = 0
    """Tokens that were loaded instead of being computed."""
    damaged: int = 0
    """Blocks that files did not give back as they were written."""


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
    """Sequences parked since the start because blocks ran out."""
    yielded: int = 0
    """Sequences parked since the start because their slot was due to another."""
    running_by_priority: dict[int, int] = field(default_factory=dict)
    """Running sequences of each priority; a priority without any is missing."""
    drafted: int = 0
    """Draft tokens computed since the start, out of the sequences' own text and grammars."""
    accepted: int = 0
    """Draft tokens of these that were accepted."""
    model_drafted: int = 0
    """Draft tokens of the draft model computed since the start."""
    model_accepted: int = 0
    """Draft tokens of these that were accepted."""
    step_s: float = 0.0
    sent_bytes: int = 0
    """Bytes sent to the other ranks of the group since the start; see ``axon.engine.parallel.traffic``."""
    gpus: list[Gpu] = field(default_factory=list)
    """The GPUs of this host's ranks; empty if they cannot be read."""
    shelf: ShelfCounters | None = None
    """None without a shelf."""
    adapters_loaded: int = 0
    """LoRA adapters taken into memory since the start."""
    adapters_dropped: int = 0
    """LoRA adapters that gave way to others since the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutput:
    """The results of one step, for all its sequences."""

    emitted: list[Emitted] = field(default_factory=list)
    scored: list[Scored] = field(default_factory=list)
    """Must be taken in before ``emitted``."""
    embedded: list[Embedded] = field(default_factory=list)
    """Vectors, from the engine of an embedding model alone."""
    refused: list[Refused] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    """Ids of the sequences without a slot: blocks were lacking, or others go first."""
    counters: Counters = field(default_factory=Counters)
