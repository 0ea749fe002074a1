"""Sets vLLM's names from what a worker knows. Made only where the settings ask for these names."""

from collections.abc import Iterable

from axon.domain.log.chunk import End
from axon.domain.turn import Turn, TurnState
from axon.telemetry.declared.vllm import VllmMetrics

_REASONS = {TurnState.CANCELLED: "abort", TurnState.FAILED: "error", TurnState.EXPIRED: "error"}


class VllmNames:
    """vLLM's names in one process, whose parts each know some of the values."""

    def __init__(self, metrics: VllmMetrics) -> None:
        self.metrics = metrics
        self._engines: dict[str, int] = {}
        self._waiting: dict[str, dict[str, int]] = {}
        """Waiting turns by model, and then by the part of the process that counted them."""

    def engine(self, model: str) -> "VllmReport":
        """The metrics of another worker of the model in this process."""
        number = self._engines[model] = self._engines.get(model, -1) + 1
        return VllmReport(self, model, str(number))

    def fleet(self, model: str, *, num_running: int, kv_usage: float) -> None:
        """Shows what a gateway sees of the workers, unless the process has engines of its own, which know better."""
        if not self._engines:
            self.metrics.running.labels(model, "0").set(num_running)
            self.metrics.kv_usage.labels(model, "0").set(kv_usage)

    def hide_fleet(self, model: str) -> None:
        """Shows no more what ``fleet`` has shown of a model."""
        if not self._engines:
            self.metrics.running.remove(model, "0")
            self.metrics.kv_usage.remove(model, "0")

    def waits(self, model: str, counter: str, num: int) -> None:
        """Shows how many turns wait, over all who count: the queue, where this process counts it, and its engines."""
        parts = self._waiting.setdefault(model, {})
        if parts.get(counter) != num:
            parts[counter] = num
            self.metrics.waiting.labels(model, "0").set(sum(parts.values()))

    def forget(self, counter: str) -> None:
        """Counts nothing any more for one who has stopped to count."""
        for model in self._waiting:
            self.waits(model, counter, 0)


class VllmReport:
    """The metrics of one worker, as an engine of vLLM would have them."""

    def __init__(self, names: VllmNames, model: str, engine: str) -> None:
        """``engine`` is the worker's number among those of its model in this process."""
        self._names, metrics = names, names.metrics
        self._metrics, self._model, self._engine = metrics, model, engine
        self._labels = model, engine
        self._drawn_at: dict[str, float] = {}
        """Monotonic time of the last token of each sequence, by its id."""
        self._running = metrics.running.labels(*self._labels)
        self._kv_usage = metrics.kv_usage.labels(*self._labels)
        self._preemptions = metrics.preemptions.labels(*self._labels)
        self._queries, self._hits = (
            each.labels(*self._labels) for each in (metrics.prefix_queries, metrics.prefix_hits)
        )
        self._step_tokens = metrics.step_tokens.labels(*self._labels)
        self._prompt, self._generated = (
            each.labels(*self._labels) for each in (metrics.prompt_tokens, metrics.generation_tokens)
        )
        self._gap, self._first = metrics.inter_token.labels(*self._labels), metrics.first_token.labels(*self._labels)

    def show(self, *, num_running: int, num_waiting: int, kv_usage: float) -> None:
        """The engine's state has changed."""
        self._running.set(num_running)
        self._names.waits(self._model, self._engine, num_waiting)
        self._kv_usage.set(kv_usage)

    def closed(self) -> None:
        """The worker has left: its gauges are not shown any more, and nothing waits there."""
        self._names.waits(self._model, self._engine, 0)
        for gauge in (self._metrics.running, self._metrics.kv_usage):
            gauge.remove(*self._labels)

    def stepped(self, *, num_tokens: int, num_drawn: int, num_preempted: int) -> None:
        """A step computed so many tokens, of which some are of answers."""
        if num_tokens:
            self._step_tokens.observe(num_tokens)
        if num_drawn:
            self._generated.inc(num_drawn)
        if num_preempted:
            self._preemptions.inc(num_preempted)

    def drew(self, ids: Iterable[str], now: float) -> None:
        """These sequences have another token."""
        for each in ids:
            if (before := self._drawn_at.get(each)) is not None:
                self._gap.observe(max(0.0, now - before))
            self._drawn_at[each] = now

    def left(self, ids: Iterable[str]) -> None:
        """These sequences are not in the engine any more."""
        for each in ids:
            self._drawn_at.pop(each, None)

    def began(self, *, num_prompt: int, num_cached: int, seconds: float) -> None:
        """A choice has its first token, so many seconds after its turn was accepted."""
        self._prompt.inc(num_prompt)
        self._queries.inc(num_prompt)
        self._hits.inc(num_cached)
        self._first.observe(max(0.0, seconds))

    def ended(self, turn: Turn) -> None:
        """A turn has ended."""
        all_of, labels, usage = self._metrics, self._labels, turn.usage
        all_of.success.labels(*labels, finished_reason(turn.state, turn.ends)).inc()
        all_of.request_prompt_tokens.labels(*labels).observe(usage.prompt_tokens)
        all_of.request_generation_tokens.labels(*labels).observe(usage.output_tokens)
        all_of.request_max_generation_tokens.labels(*labels).observe(turn.job.sampling.max_tokens)
        all_of.request_choices.labels(*labels).observe(turn.job.choices)
        if (ledger := turn.ledger) is None:
            return
        all_of.whole.labels(*labels).observe(ledger.whole_s)
        all_of.queue.labels(*labels).observe(ledger.queue_s)
        all_of.inference.labels(*labels).observe(ledger.prefill_s + ledger.decode_s + ledger.replay_s)
        all_of.prefill.labels(*labels).observe(ledger.prefill_s)
        all_of.decode.labels(*labels).observe(ledger.decode_s)
        if usage.output_tokens > 1:
            all_of.per_token.labels(*labels).observe(ledger.decode_s / (usage.output_tokens - 1))


def finished_reason(state: TurnState, ends: tuple[End, ...]) -> str:
    """vLLM's word for the way a turn ended."""
    if state in _REASONS:
        return _REASONS[state]
    return "length" if any(end.reason == "length" for end in ends) else "stop"
