"""The steps of a rollout, each a function from one deployment to the next. Pure; knows no store and no worker.

    start → waiting ── begin ──→ running ⇄ paused          step: the next share of new sessions
                │                   │ │       │
                │                   │ └─ promote: the new version is the stable one, the old one drains
                └──── rollback, abort ────────┘  no new session begins on the new version

A step whose precondition does not hold raises ``Conflict`` with a sentence that says why.
"""

from collections.abc import Collection
from dataclasses import replace
from enum import StrEnum
from itertools import pairwise

from axon.domain.registry.comparison import Verdict
from axon.domain.registry.deployment import Deployment, Member, MemberState
from axon.domain.registry.rollout import WHOLE, Rollout, RolloutState
from axon.errors import Conflict, InvalidInput

_STARTS_FROM = (MemberState.REGISTERED, MemberState.READY, MemberState.DRAINING)
_BEGUN = (RolloutState.RUNNING, RolloutState.PAUSED)
_LONGEST_BAKE_S = 30 * 24 * 3600.0
_MOST_STEPS = 100
_MOST_GOLDEN = 50
_MOST_GOLDEN_CHARS = 100_000
"""The record has the prompts in it, which every gateway reads and every change of the trail repeats."""


class Action(StrEnum):
    """What is due of a rollout that has begun."""

    NOTHING = "nothing"
    STEP = "step"
    PROMOTE = "promote"
    ABORT = "abort"


def next_step(rollout: Rollout, now: float, verdict: Verdict) -> Action:
    """The stepper: what is due now, by the comparison's verdict and the time that the present step has lasted.

    A paused rollout takes no step, but the comparison can still abort it. A verdict that is in doubt holds the step.
    """
    if rollout.state not in _BEGUN:
        return Action.NOTHING
    if verdict.is_worse:
        return Action.ABORT
    baked = rollout.bake_s > 0 and now - rollout.stepped >= rollout.bake_s
    if rollout.state is RolloutState.PAUSED or not baked or verdict.is_in_doubt:
        return Action.NOTHING
    return Action.PROMOTE if rollout.step + 1 == len(rollout.steps) else Action.STEP


def start(deployment: Deployment, rollout: Rollout) -> Deployment:
    """Adds a rollout, which waits until its version is ready and warm. One rollout at a time."""
    check(rollout)
    if (present := deployment.rollout) and not present.state.is_over:
        raise Conflict(
            f"A rollout of {present.new} is {present.state} in '{deployment.name}': promote it or take it back first.",
            code="rollout_under_way",
        )
    if not deployment.stable:
        raise Conflict(f"'{deployment.name}' has no stable version to roll out from.", code="no_stable_version")
    if rollout.new == deployment.stable:
        raise Conflict(f"{rollout.new} is the stable version of '{deployment.name}' already.", code="already_stable")
    member = deployment.member(rollout.new)
    if member is None:
        raise Conflict(
            f"{rollout.new} is no version of the deployment '{deployment.name}': add it first.", code="not_a_member"
        )
    if member.state not in _STARTS_FROM:
        raise Conflict(
            f"{rollout.new} is {member.state} in '{deployment.name}': register it as another version to try again.",
            code="version_not_ready",
        )
    began = replace(rollout, old=deployment.stable, state=RolloutState.WAITING, step=0, stepped=rollout.began)
    started = replace(deployment, rollout=began)
    if member.state is MemberState.DRAINING:
        started = with_state(started, rollout.new, MemberState.READY, now=rollout.began)
    return started


def check(rollout: Rollout) -> None:
    """Raises ``InvalidInput`` for steps or times that cannot work."""
    steps = rollout.steps
    if not 1 <= len(steps) <= _MOST_STEPS:
        raise InvalidInput(f"A rollout has 1 to {_MOST_STEPS} steps.", param="steps")
    if any(not 0 < each <= WHOLE for each in steps) or any(b <= a for a, b in pairwise(steps)):
        raise InvalidInput("Each step must be more than the one before, above 0 and at most 100 %.", param="steps")
    if not 0 <= rollout.bake_s <= _LONGEST_BAKE_S:
        raise InvalidInput("The bake time must be between 0 and 30 days.", param="bake_s")
    if len(rollout.golden) > _MOST_GOLDEN:
        raise InvalidInput(f"A rollout has at most {_MOST_GOLDEN} golden prompts.", param="golden")
    for golden in rollout.golden:
        golden.check()
    if sum(len(each.prompt) + len(each.expected) for each in rollout.golden) > _MOST_GOLDEN_CHARS:
        raise InvalidInput(
            f"Golden prompts and their answers have at most {_MOST_GOLDEN_CHARS:,} characters together.", param="golden"
        )
    rollout.tolerance.check()


def begin(deployment: Deployment, *, cold_pools: Collection[str], now: float) -> Deployment:
    """The first share of new sessions, once the version is ready and warm in every pool that it serves."""
    rollout = _under_way(deployment, "begin", RolloutState.WAITING)
    member = deployment.member(rollout.new)
    if member is None or member.state is not MemberState.READY:
        raise Conflict(f"{rollout.new} is not ready in '{deployment.name}'.", code="version_not_ready")
    if cold_pools:
        missing = ", ".join(pool or "the shared pool" for pool in sorted(cold_pools))
        raise Conflict(f"{rollout.new} has no worker yet in {missing}.", code="version_cold")
    return replace(deployment, rollout=replace(rollout, state=RolloutState.RUNNING, stepped=now, reason=""))


def wait(deployment: Deployment, reason: str) -> Deployment:
    """Records why a rollout still waits."""
    rollout = _under_way(deployment, "wait", RolloutState.WAITING)
    return replace(deployment, rollout=replace(rollout, reason=reason))


def note(deployment: Deployment, reason: str) -> Deployment:
    """Records why a rollout that has begun is held up; empty when nothing does any more."""
    rollout = _under_way(deployment, "hold up", *_BEGUN)
    return replace(deployment, rollout=replace(rollout, reason=reason))


def step(deployment: Deployment, *, now: float) -> Deployment:
    """The next share of new sessions."""
    rollout = _under_way(deployment, "step on", *_BEGUN)
    if rollout.step + 1 == len(rollout.steps):
        raise Conflict(f"The rollout of {rollout.new} is at its last step: promote it.", code="last_step")
    return replace(deployment, rollout=replace(rollout, step=rollout.step + 1, stepped=now, reason=""))


def pause(deployment: Deployment) -> Deployment:
    """Stays at the present step. The share stays, and the comparison can still abort."""
    rollout = _under_way(deployment, "pause", RolloutState.RUNNING)
    return replace(deployment, rollout=replace(rollout, state=RolloutState.PAUSED))


def resume(deployment: Deployment, *, now: float) -> Deployment:
    """Goes on from a pause; the present step's bake time begins anew."""
    rollout = _under_way(deployment, "resume", RolloutState.PAUSED)
    return replace(deployment, rollout=replace(rollout, state=RolloutState.RUNNING, stepped=now))


def promote(deployment: Deployment, *, now: float, reason: str = "promoted by hand") -> Deployment:
    """Makes the new version the stable one, at whichever step it is; the old one drains."""
    rollout = _under_way(deployment, "promote", *_BEGUN)
    over = replace(deployment, rollout=replace(rollout, state=RolloutState.PROMOTED, reason=reason))
    return with_state(replace(over, stable=rollout.new), rollout.old, MemberState.DRAINING, now=now)


def rollback(deployment: Deployment, *, now: float, reason: str = "rolled back by hand") -> Deployment:
    """New sessions begin on the old version again; those of the new one stay on it while it drains.

    A rollout that was promoted can be rolled back as well, as long as its old version still runs.
    """
    rollout = deployment.rollout
    if rollout is not None and rollout.state is RolloutState.PROMOTED and deployment.stable == rollout.new:
        deployment = _undo_promotion(deployment, rollout, now=now)
    else:
        rollout = _under_way(deployment, "roll back", RolloutState.WAITING, *_BEGUN)
    over = replace(deployment, rollout=replace(rollout, state=RolloutState.ROLLED_BACK, reason=reason))
    return _drained(over, rollout.new, now=now)


def abort(deployment: Deployment, *, now: float, reason: str, moves: bool) -> Deployment:
    """Takes the rollout back because the new version is worse.

    With ``moves``, because it errs or is mute, its state is ``failed`` and its sessions are moved to the stable
    version; without, because it is slower, they stay on it while it drains, as in a rollback.
    """
    rollout = _under_way(deployment, "abort", RolloutState.WAITING, *_BEGUN)
    over = replace(deployment, rollout=replace(rollout, state=RolloutState.ABORTED, reason=reason))
    if moves and rollout.state in _BEGUN:  # one that waits has no sessions, and may be started again
        return with_state(over, rollout.new, MemberState.FAILED, now=now)
    return _drained(over, rollout.new, now=now)


def with_state(deployment: Deployment, version: str, state: MemberState, *, now: float) -> Deployment:
    """The deployment with this state of a version."""

    def changed(member: Member) -> Member:
        if member.version != version or member.state is state:
            return member
        return replace(member, state=state, since=now)

    return replace(deployment, members=tuple(changed(member) for member in deployment.members))


def _undo_promotion(deployment: Deployment, rollout: Rollout, *, now: float) -> Deployment:
    old = deployment.member(rollout.old)
    if old is None or old.state not in (MemberState.READY, MemberState.DRAINING):
        state = old.state if old else "removed"
        raise Conflict(
            f"{rollout.old} is {state} in '{deployment.name}': start a rollout to another version instead.",
            code="version_not_ready",
        )
    return with_state(replace(deployment, stable=rollout.old), rollout.old, MemberState.READY, now=now)


def _drained(deployment: Deployment, version: str, *, now: float) -> Deployment:
    """The version drains, also one that was never ready: it would keep its letter for ever otherwise, and be made ready
    by the next worker that has it."""
    member = deployment.member(version)
    if member is None or member.state not in (MemberState.REGISTERED, MemberState.READY):
        return deployment
    return with_state(deployment, version, MemberState.DRAINING, now=now)


def _under_way(deployment: Deployment, verb: str, *states: RolloutState) -> Rollout:
    """The rollout, if it is in one of these states."""
    rollout = deployment.rollout
    if rollout is None:
        raise Conflict(f"'{deployment.name}' has no rollout to {verb}.", code="no_rollout")
    if rollout.state not in states:
        raise Conflict(
            f"The rollout of {rollout.new} in '{deployment.name}' is {rollout.state}; you can {verb} one that is "
            f"{' or '.join(states)}.",
            code="rollout_state",
        )
    return rollout
