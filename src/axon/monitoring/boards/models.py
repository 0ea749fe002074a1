"""Models, their versions and rollouts, and the work that is no chat: embeddings, grammars, batches."""

from axon.monitoring.dashboard import Dashboard, Row
from axon.monitoring.panel import MODEL, Panel, Query, most, quantile, quantiles, rate, ratio, share, total

_VERSIONS = (
    Panel(
        title="Turns by version",
        sentence="Turns that workers have ended a second, by model and version.",
        unit="ops",
        queries=(Query(expr=rate("axon_turns_total", "model, version", MODEL), legend="{{model}} {{version}}"),),
    ),
    Panel(
        title="Failed turns by version",
        sentence="Share of a version's turns that failed.",
        unit="percentunit",
        queries=(
            Query(
                expr=share("axon_turns_total", "model, version", 'outcome="failed"', MODEL),
                legend="{{model}} {{version}}",
            ),
        ),
    ),
    Panel(
        title="Time to first token by version",
        sentence="What one in twenty first tokens of a version exceeds.",
        unit="s",
        queries=(
            Query(
                expr=quantile(0.95, "axon_time_to_first_token_seconds", "model, version", MODEL),
                legend="{{model}} {{version}}",
            ),
        ),
    ),
    Panel(
        title="Fallbacks",
        sentence="Turns a second that a fallback answers for the deployment that was asked.",
        unit="ops",
        queries=(Query(expr=rate("axon_fallbacks_total", "from, to"), legend="{{from}} to {{to}}"),),
    ),
)
_ROLLOUTS = (
    Panel(
        title="Rollouts",
        sentence="The state that each deployment's rollout is in.",
        unit="short",
        queries=(
            Query(
                expr=most("axon_rollout_state", "model, version, state", MODEL),
                legend="{{model}} {{version}} {{state}}",
            ),
        ),
    ),
    Panel(
        title="Share of new sessions",
        sentence="Share of the new sessions that begin on the new version, and the step that the rollout is in.",
        unit="percentunit",
        queries=(
            Query(expr=most("axon_rollout_share_ratio", "model, version", MODEL), legend="{{model}} {{version}}"),
        ),
    ),
    Panel(
        title="Rollout steps",
        sentence="The step that each rollout is in, from 1.",
        unit="short",
        queries=(Query(expr=most("axon_rollout_step", "model, version", MODEL), legend="{{model}} {{version}}"),),
    ),
    Panel(
        title="Stuck rollouts",
        sentence="Seconds for which a rollout has been unable to go on.",
        unit="s",
        queries=(
            Query(expr=most("axon_rollout_stuck_seconds", "model, version", MODEL), legend="{{model}} {{version}}"),
        ),
        limit=1800.0,
    ),
    Panel(
        title="Ended rollouts",
        sentence="Rollouts that were promoted and aborted.",
        unit="short",
        queries=(
            Query(expr=total("axon_rollouts_ended_total", "model, outcome", MODEL), legend="{{model}} {{outcome}}"),
        ),
    ),
    Panel(
        title="Sessions and versions",
        sentence="Sessions moved to another version, and turns whose session was pinned to another version, a second.",
        unit="ops",
        queries=(
            Query(expr=rate("axon_sessions_moved_total", "reason"), legend="moved: {{reason}}"),
            Query(expr=rate("axon_pin_conflicts_total", "kind"), legend="conflict: {{kind}}"),
        ),
    ),
)
_OTHER_WORK = (
    Panel(
        title="Embeddings",
        sentence="Inputs whose vectors were computed a second.",
        unit="ops",
        queries=(Query(expr=rate("axon_embedding_inputs_total", "model", MODEL), legend="{{model}}"),),
    ),
    Panel(
        title="Microbatches",
        sentence="Inputs computed together, and what one in twenty inputs waits for its vector.",
        unit="short",
        queries=(
            Query(
                expr=ratio(
                    rate("axon_microbatch_inputs_sum", "model", MODEL),
                    rate("axon_microbatch_inputs_count", "model", MODEL),
                ),
                legend="{{model}} inputs",
            ),
            Query(expr=quantile(0.95, "axon_embedding_wait_seconds", "model", MODEL), legend="{{model}} wait p95 (s)"),
        ),
    ),
    Panel(
        title="Grammars",
        sentence="Grammars compiled a second by result, those whose result was known, and those not compiled.",
        unit="ops",
        queries=(
            Query(expr=rate("axon_grammar_compilations_total", "result"), legend="{{result}}"),
            Query(expr=rate("axon_grammar_cache_hits_total"), legend="known"),
            Query(expr=rate("axon_grammar_refusals_total", "reason"), legend="not compiled: {{reason}}"),
        ),
    ),
    Panel(
        title="Grammar compilation time",
        sentence="One compilation of a grammar.",
        unit="s",
        queries=quantiles("axon_grammar_compile_seconds"),
    ),
    Panel(
        title="Rendered texts",
        sentence="Answers rendered for the chat page a second by result, those that wait, and the time of one.",
        unit="short",
        queries=(
            Query(expr=rate("axon_renders_total", "result"), legend="{{result}}"),
            Query(expr=total("axon_renders_waiting"), legend="waiting"),
            Query(expr=quantile(0.95, "axon_render_seconds"), legend="p95 (s)"),
        ),
    ),
    Panel(
        title="Batches",
        sentence="Batches by state and files by purpose, in the store.",
        unit="short",
        queries=(
            Query(expr=most("axon_batches", "state"), legend="batches {{state}}"),
            Query(expr=most("axon_files", "purpose"), legend="files {{purpose}}"),
        ),
    ),
    Panel(
        title="Lines of batches",
        sentence="Lines answered a second by result, and lines that are being answered.",
        unit="short",
        queries=(
            Query(expr=rate("axon_batch_lines_total", "result"), legend="{{result}} a second"),
            Query(expr=total("axon_batch_lines_running"), legend="running"),
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="axon-models",
    title="Axon: models and rollouts",
    sentence="Models and their versions, rollouts, and the work that is no chat.",
    rows=(
        Row(title="Versions", panels=_VERSIONS),
        Row(title="Rollouts", panels=_ROLLOUTS),
        Row(title="Embeddings, grammars, batches", panels=_OTHER_WORK),
    ),
)
