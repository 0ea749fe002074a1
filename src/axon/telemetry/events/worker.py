"""The events that workers and their engines write. Knows no logger."""

from axon.telemetry.events.event import event

WORKERS = (
    event("worker.told_to_drain", "info", "An administrator has told the worker to drain and end.", "worker"),
    event(
        "worker.draining", "info", "The worker takes no new turn and finishes or hands over its own.", "worker", "turns"
    ),
    event(
        *("worker.drained", "info", "The worker has finished or handed over what it could."),
        *("worker", "handed_over", "left"),
    ),
    event("worker.stopped", "info", "The worker has stopped.", "worker"),
    event("worker.not_released", "warning", "The worker could not give back what it held at its end.", "error", "next"),
    event(
        *("worker.version_over", "info", "The worker's version has left its deployment: the process stops."),
        *("deployment", "version"),
    ),
    event("presence.failed", "warning", "The worker could not announce itself.", "worker", "error", "retry_s"),
    event("presence.name_taken", "error", "Another worker has this worker's name.", "worker", "hint"),
    event("lease.not_renewed", "warning", "The worker's lease could not be renewed.", "error", "holds", "not_logged"),
    event("lease.thread_failed", "error", "The thread that renews the lease has failed.", "next"),
    event("loop.stalled", "error", "The worker's event loop does not move.", "still_s", "next"),
    event(
        "shares.not_exchanged", "warning", "Served tokens could not be compared with other workers.", "error", "retry_s"
    ),
    event("shares.not_carried_over", "warning", "Served tokens could not be stored for the next worker.", "error"),
    event(
        *("worker.erasures_unknown", "warning", "The worker could not ask which sessions were erased."),
        *("error", "next"),
    ),
)

TURNS = (
    event("look.failed", "warning", "The worker could not look into the lanes.", "lanes", "error", "not_logged"),
    event("take.failed", "warning", "The worker could not take turns from the queue.", "lanes", "error", "retry_s"),
    event("claim.failed", "warning", "The worker could not claim a turn.", "lane", "error", "next"),
    event("job.beyond", "warning", "A turn needs a later release than this worker's.", "why", "next"),
    event(
        *("adapter.not_fetched", "warning", "The files of a LoRA adapter that turns name could not be fetched."),
        *("model", "error", "next"),
    ),
    event("job.unreadable", "error", "A job in the queue cannot be read by any release.", "lane", "next"),
    event("job.not_handed_over", "warning", "A turn could not be handed to another worker.", "error", "next"),
    event("jobs.scattered", "info", "Turns of a dead engine were handed to other workers.", "jobs", "left"),
    event("checkpoint.failed", "warning", "What turns have so far could not be stored.", "turns", "error", "retry_s"),
    event(
        "log.append_failed", "warning", "Tokens could not be appended to the token log.", "turns", "error", "retry_s"
    ),
    event(
        "log.restore_failed", "warning", "A stream that the token log lost could not be restored.", "error", "retry_s"
    ),
    event("turn.end_delayed", "warning", "The end of a turn could not be stored yet.", "error", "retry_s"),
    event(
        *("tickets.not_renewed", "warning", "The limits that turns hold could not be renewed."),
        *("jobs", "turns", "error", "retry_s"),
    ),
)

ENGINES = (
    event("engine.started", "info", "An engine process has started.", "pid"),
    event("engine.restarted", "info", "An engine process has taken the place of a lost one.", "pid", "running"),
    event("engine.died", "warning", "An engine process has died.", "pid", "running", "next"),
    event("engine.hangs", "error", "An engine process makes no step.", "pid", "silent_s", "next"),
    event("engine.start_failed", "error", "An engine could not be started.", "error", "retry_s"),
    event("spare_engine.died", "warning", "The spare engine process has died.", "pid", "next"),
    event("spare_engine.none", "info", "No spare engine process is kept.", "cause"),
    event("spare_engine.not_prepared", "warning", "The spare engine process could not prepare itself."),
    event(
        "engine.draft_model_unused", "warning", "The engine runs on a GPU or several ranks, without its draft model."
    ),
    event("engine.runs_float32", "warning", "The model runs in float32, several times slower than in int8."),
    event("engine.runs_pytorch", "warning", "The embedding model runs on PyTorch, which is slower."),
    event("engine.kernels_built", "warning", "The native kernels are built, once."),
    event("engine.weights_packed", "warning", "The weights are packed as int8, once."),
    event("engine.graphs_full", "warning", "No GPU memory is left for more CUDA graphs; some steps are slower."),
    event("engine.slice_late", "warning", "The engine waited long for its time slice."),
    event("engine.slices_off", "warning", "The engine does not share its cores by time slices."),
    event("engine.kv_folder_fails", "warning", "Copies of KV blocks could not be read or written in their folder."),
    event("gpu.not_reported", "warning debug", "NVML is not there or has failed: GPU utilisation is not reported."),
)
"""The last ones are written by the engine's own process, whose lines have their details in ``msg``."""

VERSIONS = (
    event("serve.version_loading", "info", "A registered version is being loaded.", "deployment", "version"),
    event("serve.version_loaded", "info", "A registered version is served.", "deployment", "version"),
    event(
        *("serve.version_not_loaded", "error", "A registered version could not be loaded."),
        *("deployment", "version", "error", "retry_s"),
    ),
    event("serve.version_unloaded", "info", "A version is no longer served here.", "deployment", "version"),
    event(
        "serve.name_taken",
        "warning",
        "A registered deployment has the name of a model of the settings.",
        "model",
        "hint",
    ),
    event("ranks.joining", "info", "The ranks of this host join their group.", "count", "rendezvous"),
    event("ranks.ended", "info", "The ranks of this host have ended.", "exit_codes"),
)

WORKER = (*WORKERS, *TURNS, *ENGINES, *VERSIONS)
