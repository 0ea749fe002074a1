"""The events that gateways write: requests, batches, models on offer, the audit log. Knows no logger."""

from axon.telemetry.events.event import event

_BY = ("by_key", "by_tenant")

REQUESTS = (
    event(
        *("request.answered", "info", "A request was answered."),
        *("method", "route", "status", "path", "ms", "client"),
    ),
    event("request.looked", "debug", "Somebody looked at the server by the admin API.", "route", "status", "ms"),
    event("request.failed", "error", "A request was answered with 500, because of a defect in the server."),
    event(
        *("dependency.unavailable", "warning", "Requests were refused, because a service that they need is away."),
        *("code", "problem", "cause", "num_requests"),
    ),
    event("sign_in.accepted", "info", "Somebody signed in at a page.", "way", *_BY, "subject"),
    event("sign_in.refused", "warning", "Somebody could not sign in at a page.", "way", "code", "problem"),
    event("gateway.draining", "info", "The gateway takes no new connection and finishes its requests.", "requests"),
    event("gateway.stopped", "info", "The gateway has stopped."),
    event(
        *("listener.paused", "warning", "New connections wait, because the system has no file descriptors left."),
        *("error", "retry_s"),
    ),
    event(
        *("last_use.not_written", "warning", "The times at which keys were last used could not be stored."),
        *("num_keys", "error", "retry_s"),
    ),
    event(
        "quota.not_measured", "warning", "What a tenant stores could not be measured; the last figure holds.", "error"
    ),
    event(
        *("grammars.compiler_died", "warning", "The process that compiles grammars has died and is started again."),
        *("exit_code", "deaths"),
    ),
    event(
        *("grammars.compiler_not_started", "warning", "The process that compiles grammars could not be started."),
        *("reason",),
    ),
    event(
        *("renderer.died", "info", "A process that renders texts for the chat page has died and is started again."),
        *("exit_code", "deaths"),
    ),
    event(
        *("renderer.not_started", "warning", "A process that renders texts for the chat page could not be started."),
        *("reason",),
    ),
)

OFFERS = (
    event(
        *("fleet.deployment", "info", "The gateway learned which version of a model the workers serve."),
        *("model", "version", "num_versions"),
    ),
    event(
        *("fleet.model_mismatch", "error", "The workers serve a model with another tokenizer or chat template."),
        *("model", "text_digest", "hint"),
    ),
    event("fleet.not_seen", "warning", "The gateway could not learn which workers there are.", "model", "error"),
    event("starts.not_watched", "warning", "The gateway could not learn which workers start.", "error", "not_logged"),
    event(
        *("text.not_loaded", "error", "The tokenizer of a version could not be loaded; its requests are refused."),
        *("version", "source", "error"),
    ),
    event("rollout.samples_not_put", "warning", "Counts of a rollout could not be given to control.", "error"),
    event("registry.cut_off", "warning", "The registry cannot be read; the last revision holds.", "error", "revision"),
    event("registry.found_again", "info", "The registry can be read again.", "revision"),
    event(
        "registry.no_slot_free", "warning", "Too many processes follow the registry; this one is not counted.", "holder"
    ),
)

BATCHES = (
    event("batch.moved", "info", "A batch has reached another state.", "batch", "state"),
    event("batch.interrupted", "warning", "A step of a batch failed and is tried again.", "batch", "step", "error"),
    event("batch.failed", "error", "A batch was given up for now, because of a defect in the server.", "batch"),
    event("batch.lease_lost", "warning", "Another gateway runs the batch now; this one leaves it.", "batch"),
    event("batches.look_failed", "warning error", "The gateway could not look for batches to run.", "error"),
)

AUDIT = (
    event("admin.key_created", "info", "An API key was made.", *_BY, "key_id", "tenant", "scopes"),
    event(
        *("admin.key_rotated", "info", "An API key was replaced by a new one.", *_BY),
        *("key_id", "previous", "tenant", "overlap_s"),
    ),
    event("admin.key_revoked", "info", "An API key was revoked.", *_BY, "key_id"),
    event("admin.tenant_created", "info", "A tenant was made.", *_BY, "tenant", "plan", "limits"),
    event("admin.tenant_changed", "info", "A tenant was changed.", *_BY, "tenant", "plan", "limits"),
    event("admin.tenant_suspended", "info", "A tenant was suspended: its requests are refused.", *_BY, "tenant"),
    event("admin.tenant_resumed", "info", "A suspended tenant may ask again.", *_BY, "tenant"),
    event("admin.tenant_removed", "info", "A tenant was removed.", *_BY, "tenant"),
    event("admin.plan_created", "info", "A plan was made.", *_BY, "plan", "limits"),
    event("admin.plan_changed", "info", "A plan was changed.", *_BY, "plan", "limits"),
    event("admin.plan_removed", "info", "A plan was removed.", *_BY, "plan"),
    event("admin.worker_drained", "info", "A worker was told to drain.", *_BY, "worker"),
    event(
        "admin.adapter_added",
        "info",
        "An adapter was added, or given other files.",
        *_BY,
        "adapter",
        "tenant",
        "digest",
    ),
    event("admin.adapter_removed", "info", "An adapter was removed.", *_BY, "adapter"),
    event("admin.profiled", "info", "A profile of a process was asked for.", *_BY, "process", "profile", "record_s"),
    event("admin.price_added", "info", "A price was added.", *_BY, "price", "model", "version"),
    event("admin.model_added", "info", "A model was added to the registry.", *_BY, "model", "version"),
    event("admin.model_changed", "info", "A model was changed.", *_BY, "model", "fields"),
    event("admin.model_removed", "info", "A model was removed.", *_BY, "model"),
    event("admin.version_added", "info", "A version of a model was added.", *_BY, "version", "digest"),
    event("admin.version_removed", "info", "A version of a model was removed.", *_BY, "version"),
    event("admin.alias_created", "info", "An alias was made.", *_BY, "alias", "deployment"),
    event("admin.alias_switched", "info", "An alias names another deployment now.", *_BY, "alias", "deployment"),
    event("admin.alias_removed", "info", "An alias was removed.", *_BY, "alias"),
    event("admin.deployment_created", "info", "A deployment was made.", *_BY, "deployment", "version"),
    event("admin.deployment_changed", "info", "A deployment was changed.", *_BY, "deployment", "changes"),
    event("admin.deployment_removed", "info", "A deployment was removed.", *_BY, "deployment"),
    event("admin.rollout_started", "info", "A rollout was asked for.", *_BY, "deployment", "version"),
    event("admin.rollout_paused", "info", "A rollout was paused by hand.", *_BY, "deployment", "reason"),
    event("admin.rollout_resumed", "info", "A rollout was resumed by hand.", *_BY, "deployment", "reason"),
    event("admin.rollout_stepped", "info", "A rollout was taken a step on by hand.", *_BY, "deployment", "reason"),
    event("admin.rollout_promoted", "info", "A rollout was promoted by hand.", *_BY, "deployment", "reason"),
    event("admin.rollout_rolled_back", "info", "A rollout was rolled back by hand.", *_BY, "deployment", "reason"),
    event("admin.rollout_aborted", "info", "A rollout was aborted by hand.", *_BY, "deployment", "reason"),
)
"""Changes by the admin API; a line says which key made it."""

GATEWAY = (*REQUESTS, *OFFERS, *BATCHES, *AUDIT)
