"""The events that control writes: turns without owner, the fleet, rollouts. Knows no logger."""

from axon.telemetry.events.event import event

_ROLLOUT = ("deployment", "version", "share", "state")

TURNS = (
    event("turns.recovered", "info", "Turns that a stopped server had left were enqueued again.", "count"),
    event("turn.not_recovered", "error", "A turn could not be enqueued again.", "error"),
    event(
        "turn.handed_on", "warning", "The owner of a turn is silent: a copy was enqueued for another worker.", "owner"
    ),
    event("turn.orphaned", "warning", "A turn had no owner and was in no lane: it was enqueued again."),
    event("turn.not_looked_at", "warning", "Control could not learn who owns a turn.", "error"),
    event("sweep.failed", "warning", "Control could not look for turns without owner.", "error"),
    event("retention.failed", "warning", "Old text could not be deleted; it is tried again.", "error"),
    event(
        "revocation.not_marked", "warning", "A revocation is in the store only, which gateways read later.", "key_id"
    ),
    event("revocation.written", "info", "A revocation that had waited for the store was written.", "key_id"),
    event("revocation.waits", "warning", "Revocations wait for the store.", "error"),
    event("persister.waits", "warning", "Records of the journal wait for the store.", "error", "retry_s"),
    event("persister.write_broke", "error", "The store broke over records; they are tried one by one.", "num_records"),
    event(
        *("persister.record_set_aside", "error", "A record of the journal can never be stored and was set aside."),
        *("reason", "num_bytes"),
    ),
)

FLEET = (
    event("leader.leads", "info", "This control leads now.", "control", "crowd"),
    event("leader.stands_by", "info", "This control leads no longer.", "control", "crowd"),
    event("leader.not_known", "warning", "Control could not learn who leads.", "error"),
    event("fleet.led", "info", "This control decides over the fleet from now on.", "control", "term"),
    event("fleet.deposed", "warning", "Another control decides over the fleet.", "control", "term", "error"),
    event("fleet.ensured", "info", "A replica was ordered.", "replica", "reason", "term"),
    event("fleet.stopped", "info", "A replica was ordered to stop.", "replica", "reason", "term"),
    event("fleet.order_failed", "warning", "The launcher did not take an order.", "action", "replica", "error"),
    event("fleet.not_looked_at", "warning", "Control could not look at the fleet.", "error"),
    event("fleet.decisions_unknown", "warning", "Earlier decisions over the fleet could not be read.", "error"),
    event("fleet.presences_unknown", "warning", "Control could not learn which workers there are.", "error"),
    event("backlog.unknown", "warning", "Control could not count what waits for workers, for its metrics.", "error"),
    event("census.failed", "warning", "Control could not take its census of the store, for its metrics.", "error"),
    event("journal.lag_unknown", "warning", "Control could not learn how far the journal lags.", "error"),
    event("fleet.demand_unknown", "warning", "Control could not learn how much waits.", "group", "error"),
    event(
        "fleet.last_asked_unknown",
        "warning",
        "It is not known when a deployment was last asked.",
        "deployment",
        "error",
    ),
    event("fleet.uses_not_written", "warning", "The times that replicas ran could not be stored for billing.", "error"),
    event("fleet.launched_elsewhere", "error", "Control of another machine launches the workers.", "hint"),
    event("replica.started", "info", "A replica's process was started.", "replica", "pid", "restarts"),
    event("replica.adopted", "info", "A replica's process that already ran was found.", "replica", "pid"),
    event("replica.ended", "warning", "A replica's process ended by itself.", "replica", "problem", "retry_s"),
    event("replica.stopped", "info", "A replica's process has stopped, as ordered.", "replica"),
    event(
        "replica.killed", "warning", "A replica's process did not stop in time and was killed.", "replica", "after_s"
    ),
)

ROLLOUTS = (
    event("version.ready", "info", "Workers have a version that was ordered.", *_ROLLOUT),
    event("rollout.waits", "info", "A rollout waits before its first step.", *_ROLLOUT, "reason"),
    event("rollout.begun", "info", "A rollout has begun: its first share of sessions gets the new version.", *_ROLLOUT),
    event("rollout.stepped", "info", "A rollout went to its next share.", *_ROLLOUT),
    event(
        "rollout.held_up", "info", "The new version of a rollout has no worker, or has one again.", *_ROLLOUT, "reason"
    ),
    event("rollout.promoted", "info", "A rollout is done: the new version is the stable one.", *_ROLLOUT),
    event("rollout.aborted", "warning", "A rollout was taken back.", *_ROLLOUT, "reason", "moves"),
    event("rollout.outrun", "info", "Somebody else changed the deployment first.", "deployment", "event_missed"),
    event("rollout.failed", "warning", "Control could not go on with a rollout.", "deployment", "error"),
    event("rollouts.failed", "warning", "Control could not read the rollouts.", "error"),
    event("golden.checked", "info", "The golden prompts of a rollout were asked.", "deployment", "version", "wrong"),
    event("golden.not_asked", "warning", "A golden prompt was not answered.", "deployment", "version", "error"),
    event("golden.failed", "error", "The check of golden prompts failed by a defect.", "deployment", "version"),
    event("drain.closed", "info", "An old version gets no more turns.", "deployment", "version", "by_age"),
    event("drain.removed", "info", "An old version is used by nobody and was removed.", "deployment", "version"),
    event("drain.waits", "warning", "Control could not look at versions that drain.", "error"),
)

CONTROL = (*TURNS, *FLEET, *ROLLOUTS)
