"""Sets the metrics of a turn when it has ended, from its record and its ledger."""

from axon.domain.job import Job
from axon.domain.tracing.turn_spans import PROVIDER, operation_of
from axon.domain.turn import Turn, TurnState
from axon.telemetry.metrics import Metrics
from axon.telemetry.turn_labels import turn_labels


def report_turn(metrics: Metrics, turn: Turn) -> None:
    """Counts an ended turn: how it ended, its tokens, and where its time went."""
    metrics.usage(turn.tenant, turn.usage, turn.ledger)
    labels, turns, usage = turn_labels(turn.job), metrics.turns, turn.usage
    turns.ended.labels(*labels, turn.state).inc()
    turns.model_tokens.labels("prompt", *labels).inc(usage.prompt_tokens)
    turns.model_tokens.labels("cached", *labels).inc(usage.cached_tokens)
    turns.model_tokens.labels("output", *labels).inc(usage.output_tokens)
    _report_genai(metrics, turn)
    if (ledger := turn.ledger) is None:
        return
    turns.model_tokens.labels("replayed", *labels).inc(ledger.replayed)
    turns.model_tokens.labels("wasted", *labels).inc(ledger.wasted)
    turns.duration.labels(*labels).observe(ledger.whole_s)
    turns.slot_wait.labels(*labels).observe(ledger.waited_s)
    turns.pacing.labels(*labels).observe(ledger.paced_s)
    if ledger.emitted:
        turns.prefill.labels(*labels).observe(ledger.prefill_s)
        turns.decode.labels(*labels).observe(ledger.decode_s)


def _report_genai(metrics: Metrics, turn: Turn) -> None:
    genai, labels, usage = metrics.genai, _genai_labels(turn.job), turn.usage
    genai.usage.labels(*labels, "input").observe(usage.prompt_tokens)
    genai.usage.labels(*labels, "output").observe(usage.output_tokens)
    if (ledger := turn.ledger) is None:
        return
    error = "" if turn.state is TurnState.COMPLETED else turn.code or str(turn.state)
    genai.duration.labels(*labels, error).observe(ledger.whole_s)
    if ledger.emitted:
        genai.first_token.labels(*labels).observe(ledger.queue_s + ledger.prefill_s)
    if ledger.emitted > 1:
        genai.per_token.labels(*labels).observe(ledger.decode_s / (ledger.emitted - 1))


def _genai_labels(job: Job) -> tuple[str, str, str, str]:
    return operation_of(job), PROVIDER, job.deployment, job.version
