"""Metrics of rollouts, as the leading control reports them."""

from axon.telemetry.declared.declaring import Declarations

_ROLLOUT = ("model", "version")


class RolloutMetrics:
    """Rollouts that go on, and how they ended."""

    def __init__(self, make: Declarations) -> None:
        make.about("Rollouts")
        self.state = make.gauge(
            "axon_rollout_state",
            "1 for the state that a deployment's rollout is in: waiting, running, paused, promoted or aborted.",
            *(*_ROLLOUT, "state"),
            unit="rollouts",
            together="max",
        )
        self.step = make.gauge(
            "axon_rollout_step", "The step that the rollout is in, from 1.", *_ROLLOUT, unit="steps", together="max"
        )
        self.share = make.gauge(
            "axon_rollout_share_ratio",
            "Share of new sessions that begin on the new version, 0 to 1.",
            *_ROLLOUT,
            together="max",
        )
        self.stuck = make.gauge(
            "axon_rollout_stuck_seconds",
            "Seconds for which a rollout has been unable to go on; 0 while nothing holds it up.",
            *_ROLLOUT,
            together="max",
        )
        self.ended = make.counter(
            "axon_rollouts_ended_total",
            "Rollouts that ended, by outcome: promoted or aborted.",
            *(*_ROLLOUT, "outcome"),
            unit="rollouts",
        )
