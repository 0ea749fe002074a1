"""The events that any process writes: its start, its services, its children. Knows no logger."""

from axon.telemetry.events.event import event

PROCESS = (
    event(
        *("process.ready", "info", "The process is ready."),
        *("role", "url", "metrics_url", "models", "key_file", "pid", "facts"),
    ),
    event("process.starting", "info", "The process prepares itself.", "stage"),
    event("process.waits", "warning", "The process waits for a service before it starts.", "error", "left_s"),
    event("process.stopping", "info", "The process stops when its work is done.", "work", "left_s"),
    event(
        "front.ended", "warning", "A front has ended and is started again.", "pid", "exit_code", "problem", "retry_s"
    ),
    event("front.connection_failed", "error", "The connection of a front to its hub failed by a defect."),
    event("front.call_failed", "error", "A call of a front to its hub failed by a defect.", "method"),
    event("journal.commit_failed", "error", "The journal could not commit turns.", "turns"),
    event("profile.began", "info", "A profile is being recorded.", "process", "profile", "record_s"),
    event("profile.ended", "info", "A profile was recorded.", "process", "profile"),
    event("profile.failed", "warning", "A profile was not recorded.", "process", "profile", "error"),
    event("traces.export_failed", "error", "Spans could not be exported because of a defect.", "spans"),
    event("traces.exported_again", "info", "The collector takes spans again."),
    event("traces.lost", "warning", "The collector does not take spans, which are lost.", "spans", "next"),
    event("traces.turn_left_out", "error", "A turn's spans could not be made because of a defect."),
    event(
        "erasure.incomplete", "warning", "Erased text stays in the store's write-ahead log for now.", "error", "next"
    ),
    event("turn.not_encoded", "error", "A turn cannot be encoded for the store."),
    event("turn.left_out", "error", "A stored turn cannot be read and is left out."),
    event("wakeups.cut_off", "warning", "Notifications of the live service are cut off.", "error", "next"),
)
