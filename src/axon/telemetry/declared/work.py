"""Metrics of grammars, batches, embeddings and rendered texts."""

from axon.telemetry.declared import buckets
from axon.telemetry.declared.declaring import WORKER, Declarations


class GrammarMetrics:
    """Schemas and grammars that requests bring, as gateways compile them."""

    def __init__(self, make: Declarations) -> None:
        make.about("Structured output")
        self.compilations = make.counter(
            "axon_grammar_compilations_total",
            "Grammars given to the compiler, by kind and result: compiled, refused or failed.",
            *("kind", "result"),
            unit="grammars",
        )
        self.seconds = make.histogram(
            "axon_grammar_compile_seconds", "One compilation of a grammar.", buckets.OPERATION, "kind"
        )
        self.cache_hits = make.counter(
            "axon_grammar_cache_hits_total", "Grammars whose result was known.", "kind", unit="grammars"
        )
        self.refusals = make.counter(
            "axon_grammar_refusals_total",
            "Grammars that were not compiled: too many wait (of the tenant, of all), the time ran out, or draining.",
            "reason",
            unit="grammars",
            starts=[("tenant_full",), ("full",), ("timeout",), ("draining",)],
        )


class RenderMetrics:
    """Answers that gateways render for the chat page."""

    def __init__(self, make: Declarations) -> None:
        make.about("Rendered texts")
        self.texts = make.counter(
            "axon_renders_total",
            "Texts of the chat page by result: formatted; plain because the format cost too much (too_costly), was too "
            "slow in coming (timeout) or ended its process (crash); or not at all (not_started).",
            "result",
            unit="texts",
            starts=[("formatted",), ("too_costly",), ("timeout",), ("crash",), ("not_started",)],
        )
        self.seconds = make.histogram(
            "axon_render_seconds", "One text of the chat page, from its turn to its HTML.", buckets.OPERATION
        )
        self.waiting = make.gauge(
            "axon_renders_waiting", "Texts of the chat page that wait for a process.", unit="texts"
        )


class BatchMetrics:
    """Files and batches, as the gateways' batch runner reports them."""

    def __init__(self, make: Declarations) -> None:
        make.about("Batches")
        self.batches = make.gauge(
            "axon_batches", "Batches in the store by state.", "state", unit="batches", together="max"
        )
        self.files = make.gauge("axon_files", "Files in the store by purpose.", "purpose", unit="files", together="max")
        self.lines = make.counter(
            "axon_batch_lines_total",
            "Lines of batches by result: completed or failed.",
            "result",
            unit="lines",
            starts=[("completed",), ("failed",)],
        )
        self.running = make.gauge("axon_batch_lines_running", "Lines of batches that are being answered.", unit="lines")


class EmbeddingMetrics:
    """Models that give vectors, as workers report them."""

    def __init__(self, make: Declarations) -> None:
        make.about("Embeddings")
        self.inputs = make.counter(
            "axon_embedding_inputs_total", "Inputs whose vectors were computed.", *WORKER, unit="inputs"
        )
        self.microbatch = make.histogram(
            "axon_microbatch_inputs", "Inputs that were computed together.", buckets.SIZE, *WORKER, unit="inputs"
        )
        self.wait = make.histogram(
            "axon_embedding_wait_seconds",
            "From a worker taking an input to the end of the microbatch that computed it.",
            buckets.OPERATION,
            *WORKER,
        )
