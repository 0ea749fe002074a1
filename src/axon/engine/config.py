"""The engine's section of the settings. Imports no torch, so that the command line starts fast."""

from dataclasses import dataclass, replace
from typing import Literal

from axon.errors import Misconfigured

MOST_COPY_AGE_S = 29 * 86400.0
"""Copies of blocks are never kept for longer: an engine that was away learns what was erased for 30 days."""


NO_DRAFT = "none"
"""The ``draft_model`` of an engine that is to have none, not even the default model's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """The settings of one engine process."""

    kind: Literal["axon", "vllm", "echo"] = "axon"
    """``axon`` runs a model; ``vllm`` has vLLM run it, in the environment of ``vllm_python``; ``echo`` repeats its
    prompt without one, for tests of everything above."""
    vllm_python: str = ""
    """The Python interpreter of an environment with vLLM, for models with ``kind = vllm``, e.g.
    ``/opt/vllm/bin/python``. Its packages never meet those of Axon."""
    vllm_arguments: str = ""
    """More arguments of vLLM's engine, as a JSON object: ``{"enforce_eager": true}``. They go before what the other
    settings say."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device that the model runs on: ``auto`` takes an NVIDIA GPU where there is one and ``dtype`` can run there."""
    dtype: Literal["auto", "int8", "float32", "bfloat16", "fp8"] = "auto"
    """Arithmetic of the model. ``auto`` is ``bfloat16`` on a GPU, or ``fp8`` if the files are fp8. ``fp8`` halves the
    weights' memory, is faster, and needs a GPU of the Hopper generation or newer. On the CPU ``auto`` is ``int8``
    where its native kernels are shipped or can be built (a C++ compiler is needed once), else ``float32``; ``int8``
    refuses to start there. Models that give vectors take ``float32`` on the CPU unless ``int8`` is asked for: vectors
    are compared with others'."""
    threads: int = 0
    """CPU threads of a step; 0 takes every core."""
    max_sequences: int = 0
    """Sequences that run at once (the worker's slots); 0 takes 16, or 256 on a GPU."""
    max_batch_tokens: int = 0
    """Token budget of a step, prefill and decode together; 0 takes 512, or 8192 on a GPU."""
    max_prefill_tokens: int = 0
    """The most prompt tokens of a step while answers stream, but for interrupted streams on a CPU (``max_slowdown``);
    0 takes 128, or 8192 on a GPU, where ``itl_slo_ms`` bounds it first for all but small models."""
    max_slowdown: float = 2.0
    """Factor by which a prompt may lengthen a step while answers stream; sets the size of prompt chunks on a CPU. What
    drafts add to a step counts as the streams' own time, up to as much as they take without.
    Streams that were interrupted by a crash are computed again in larger chunks, up to a quarter of a second a step."""
    itl_slo_ms: float = 0.0
    """Most milliseconds between two tokens of a stream, as far as prompts lengthen them: prompt chunks shrink to keep
    it. 0 sets no limit on a CPU, and takes 50 on a GPU."""
    speculate: bool = True
    """Speculative decoding: drafts the next tokens from the sequence's own text, and with ``draft_model``, and verifies
    them together, where that saves time: with few streams. Changes no token."""
    draft_model: str = ""
    """A small model that drafts where the sequence's own text has nothing to draft (speculative decoding): a folder, or
    a name in the models folder, as for ``model``. It must have the model's tokenizer, runs beside the model on one
    rank, and is used only while its drafts save time. A folder with an EAGLE-3 head of the model does too, for models
    in ``int8``. Empty for the head that comes with the default model, and for none with any other; ``none`` for none.
    Changes no token."""
    draft_tokens: int = 4
    """The most tokens that ``draft_model`` drafts for a stream in a step; fewer where that is faster."""
    policy: Literal["fair", "first_come"] = "fair"
    """The order of service: ``fair`` takes the tenant served least for its weight, ``first_come`` the oldest."""
    call_format: Literal["auto", "hermes", "llama_json", "pythonic", "mistral", "qwen3_coder", "harmony"] = "auto"
    """Format in which the model writes tool calls; ``auto`` goes by its chat template. The engine does not read it."""
    max_model_len: int = 0
    """Longest prompt + answer; 0 takes the model's own limit."""
    block_size: int = 0
    """Tokens of KV in a block; 0 takes 16, or 64 on a GPU."""
    kv_memory_bytes: int = 0
    """Memory for KV blocks, those of ``draft_model`` among them; 0 takes 1 GiB, or all that ``gpu_memory_fraction``
    leaves on a GPU."""
    kv_dtype: Literal["auto", "fp8"] = "auto"
    """Numbers that a GPU keeps keys and values in: ``fp8`` gives room for twice as many tokens, and needs a GPU of the
    Hopper generation or newer; ``auto`` keeps them as the model computes them."""
    kv_host_bytes: int = 0
    """Host memory of each rank for copies of KV blocks (the shelf), pinned on a GPU: sequences that lost their blocks
    get them back from there instead of computing them again. 0 keeps none. On a CPU, ``kv_memory_bytes`` serves
    better."""
    kv_folder: str = ""
    """Folder for copies of KV blocks, on a local NVMe disk best: conversations find theirs again after hours, and after
    a restart. Empty keeps none. Blocks are as private as the text that they were computed from."""
    kv_folder_bytes: int = 10 << 30
    """The most bytes of ``kv_folder`` that an engine fills; the blocks used least recently go first. Those of engines
    that no longer run may take as many again, all together."""
    kv_folder_max_age_s: float = 86400.0
    """Seconds after which a copy of a KV block is erased from memory and folder, used or not. 0 takes the most, 29
    days: what was erased is remembered for 30, so that no copy outlives its erasure."""
    adapter_slots: int = 8
    """The most LoRA adapters in memory at once; the least recently used one that no sequence needs gives way. 0 refuses
    adapters. They run in one rank, and on a GPU not in fp8."""
    adapter_memory_bytes: int = 1 << 30
    """Memory that the LoRA adapters may take together; an adapter of rank 16 for all products of a model of 1 billion
    parameters takes about 45 MB. A GPU sets it aside at the start, where each adapter takes room for 16, 32, 48 or 64
    ranks of all products."""
    gpu_memory_fraction: float = 0.9
    """Fraction of a GPU's memory that weights, blocks and the largest step may fill together."""
    tensor_parallel: int = 1
    """Ranks that the model is cut over, each a process with its own GPU (or, in ``float32``, some of the cores)."""
    rendezvous: str = ""
    """Address at which ranks of other hosts join (``axon rank``): ``tcp://HOST:PORT``; empty: all are on this host."""
    local_ranks: int = 1
    """Ranks that this host starts itself if ``rendezvous`` is set; it waits for the others to join."""
    hosts: int = 1
    """Hosts that the ranks are spread over equally, in place of ``local_ranks``; LeaderWorkerSet's environment sets it,
    ``rendezvous`` and ``worker.host_index``."""
    join_timeout_s: float = 60.0
    """Seconds that the ranks of other hosts may take to join."""
    rank_timeout_s: float = 2.0
    """Seconds of silence after which a rank counts as dead, and the whole group with it."""
    share_cores: bool = False
    """Whether the engine shares CPU cores with other engines of this user by time slices, a step at a time. Without it,
    the operating system shares them out."""
    core_weight: float = 0.0
    """Share of the cores against the other engines on them; 0 takes 1, or 0.5 for an embedding model."""
    embedding_batch: int = 32
    """The most inputs that an embedding model computes in one batch; ``max_batch_tokens`` bounds it too."""
    embedding_gather_ms: float = 20.0
    """Milliseconds for which a batch of an embedding model is gathered at most while inputs of several requests wait;
    those of a single request never wait. 0 gathers only what comes while the batch before it is computed."""
    embedding_enough_tokens: int = 0
    """Tokens from which a batch of an embedding model is gathered no longer, because a larger one would compute no more
    tokens a second; 0 takes 64, or 8192 on a GPU."""
    echo_dimensions: int = 0
    """Makes the echo engine an embedding model with vectors of this size, for tests; 0 lets it repeat prompts."""
    echo_classes: int = 0
    """Makes the echo engine a classification model with this many classes, for tests."""
    echo_step_s: float = 0.0
    """Seconds that the echo engine takes for a step."""
    echo_shift: int = 0
    """Tokens by which the echo engine rotates what it repeats, so that two versions of it can be told apart."""
    echo_fails: float = 0.0
    """Share of requests that the echo engine fails, for tests of a version that errs."""
    echo_script: str = ""
    """File of answers that the echo engine gives instead of its prompt, for tests of clients that call tools: a JSON
    list of ``{"if": REGEX, "say": TEXT}``, of which the first whose regex is found in the prompt answers."""

    @property
    def num_local_ranks(self) -> int:
        """Ranks on the leading rank's host, itself included."""
        if not self.rendezvous:
            return self.tensor_parallel
        if self.hosts > 1:
            return max(1, self.tensor_parallel // self.hosts)
        return min(max(1, self.local_ranks), self.tensor_parallel)


_DEFAULTS: dict[str, dict[str, float]] = {
    "cpu": {
        "max_sequences": 16,
        "max_batch_tokens": 512,
        "max_prefill_tokens": 128,
        "embedding_enough_tokens": 64,
        "block_size": 16,
        "kv_memory_bytes": 1 << 30,
    },
    "cuda": {
        "max_sequences": 256,
        "max_batch_tokens": 8192,
        "max_prefill_tokens": 8192,
        "embedding_enough_tokens": 8192,
        "itl_slo_ms": 50.0,
        "block_size": 64,
    },
}


def for_device(config: EngineConfig, device: Literal["cpu", "cuda"]) -> EngineConfig:
    """The config with the defaults of the device in the place of zeros."""
    chosen = {name: default for name, default in _DEFAULTS[device].items() if not getattr(config, name)}
    return replace(config, device=device, **chosen)  # type: ignore[arg-type]


def num_blocks_in(config: EngineConfig, bytes_per_block: int) -> int:
    """Number of blocks that fit into ``kv_memory_bytes``; raises ``Misconfigured`` if not even one does."""
    num_blocks = config.kv_memory_bytes // bytes_per_block
    if num_blocks < 1:
        raise Misconfigured(f"kv_memory_bytes = {config.kv_memory_bytes} holds not even one block")
    return num_blocks
