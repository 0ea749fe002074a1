"""Steps of a rollout: what each does, when it is refused, and what holds after any sequence of them."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from axon.domain.registry import steps
from axon.domain.registry.comparison import Criterion, Verdict
from axon.domain.registry.deployment import Deployment, Member, MemberState
from axon.domain.registry.golden import Golden
from axon.domain.registry.rollout import WHOLE, Rollout, RolloutState
from axon.domain.registry.snapshot import first_version
from axon.domain.registry.steps import Action, next_step
from axon.domain.registry.tolerance import Tolerance
from axon.errors import Conflict, InvalidInput
from tests.domain.registry.builders import deployment
from tests.long import examples

SHARES = (1000, 5000, WHOLE)
WORSE = Verdict(criterion=Criterion.ERRORS, is_worse=True, is_in_doubt=True)
DOUBT = Verdict(criterion=Criterion.TTFT, is_in_doubt=True)


def planned(new: str = "small@v2", rollout_id: str = "ro_1", bake_s: float = 60.0) -> Rollout:
    return Rollout(id=rollout_id, old="", new=new, steps=SHARES, bake_s=bake_s, began=10.0)


def waiting() -> Deployment:
    return steps.start(deployment(), planned())


def running() -> Deployment:
    return steps.begin(waiting(), cold_pools=(), now=20.0)


def rollout_of(each: Deployment) -> Rollout:
    assert each.rollout is not None
    return each.rollout


def state_of(each: Deployment, version: str) -> MemberState:
    member = each.member(version)
    assert member is not None
    return member.state


class TestStart:
    def test_a_started_rollout_waits_and_gives_the_new_version_nothing(self) -> None:
        started = waiting()
        assert rollout_of(started).state is RolloutState.WAITING
        assert rollout_of(started).old == "small@v1"
        assert rollout_of(started).share == 0

    @pytest.mark.parametrize("going", [waiting, running, lambda: steps.pause(running())])
    def test_there_is_one_rollout_at_a_time(self, going: Callable[[], Deployment]) -> None:
        with pytest.raises(Conflict, match="promote it or take it back first"):
            steps.start(going(), planned(rollout_id="ro_2"))

    def test_the_new_version_must_be_a_member_and_not_the_stable_one(self) -> None:
        with pytest.raises(Conflict, match="is no version of the deployment"):
            steps.start(deployment(), planned("small@v9"))
        with pytest.raises(Conflict, match="is the stable version"):
            steps.start(deployment(), planned("small@v1"))
        with pytest.raises(Conflict, match="has no stable version"):
            steps.start(replace(deployment(), stable=""), planned())

    @pytest.mark.parametrize("state", [MemberState.FAILED, MemberState.CLOSED])
    def test_a_version_that_failed_or_is_closed_is_refused(self, state: MemberState) -> None:
        small = steps.with_state(deployment(), "small@v2", state, now=1.0)
        with pytest.raises(Conflict, match=f"small@v2 is {state}"):
            steps.start(small, planned())

    def test_a_version_that_drains_becomes_ready_again(self) -> None:
        again = steps.start(steps.rollback(running(), now=30.0), planned(rollout_id="ro_2"))
        assert state_of(again, "small@v2") is MemberState.READY
        assert rollout_of(again).id == "ro_2"

    @pytest.mark.parametrize(
        "wrong",
        [
            {"steps": ()},
            {"steps": (5000, 1000)},
            {"steps": (0, WHOLE)},
            {"steps": (WHOLE + 1,)},
            {"bake_s": -1.0},
            {"tolerance": Tolerance(slower=0.5)},
            {"golden": (Golden(prompt="a", expected="b"),) * 51},
            {"golden": (Golden(prompt="a", expected=""),)},
            {"golden": (Golden(prompt="a" * 10_001, expected="b"),)},
            {"golden": (Golden(prompt="a" * 9_000, expected="b"),) * 12},
            {"golden": (Golden(prompt="a", expected="b", max_tokens=-1),)},
        ],
    )
    def test_steps_and_bounds_that_cannot_work_are_refused(self, wrong: dict[str, object]) -> None:
        with pytest.raises(InvalidInput):
            steps.start(deployment(), replace(planned(), **wrong))  # type: ignore[arg-type]


class TestBegin:
    def test_the_first_share_is_given_when_the_version_is_ready_and_warm(self) -> None:
        assert rollout_of(running()).share == 1000
        assert rollout_of(running()).stepped == 20.0

    def test_a_version_that_is_cold_in_a_pool_gets_nothing(self) -> None:
        with pytest.raises(Conflict, match="no worker yet in the shared pool, gold"):
            steps.begin(waiting(), cold_pools=("gold", ""), now=20.0)

    def test_a_version_that_is_not_ready_gets_nothing(self) -> None:
        small = steps.with_state(waiting(), "small@v2", MemberState.REGISTERED, now=1.0)
        with pytest.raises(Conflict, match="is not ready"):
            steps.begin(small, cold_pools=(), now=20.0)

    def test_a_rollout_that_waits_says_what_for(self) -> None:
        assert rollout_of(steps.wait(waiting(), "for a worker")).reason == "for a worker"


class TestEnds:
    def test_a_promotion_makes_the_new_version_stable_and_drains_the_old_one(self) -> None:
        done = steps.promote(running(), now=50.0)
        assert (done.stable, state_of(done, "small@v1")) == ("small@v2", MemberState.DRAINING)
        assert first_version(done, "any", is_fresh=True) == "small@v2"

    def test_a_rollback_keeps_the_sessions_of_the_new_version_on_it(self) -> None:
        back = steps.rollback(running(), now=50.0)
        assert (back.stable, state_of(back, "small@v2")) == ("small@v1", MemberState.DRAINING)
        assert rollout_of(back).state is RolloutState.ROLLED_BACK
        assert {first_version(back, f"key-{n}", is_fresh=True) for n in range(50)} == {"small@v1"}

    def test_a_promoted_rollout_can_be_rolled_back_while_its_old_version_drains(self) -> None:
        back = steps.rollback(steps.promote(running(), now=50.0), now=60.0)
        assert back.stable == "small@v1"
        assert [member.state for member in back.members] == [MemberState.READY, MemberState.DRAINING]

    def test_a_promoted_rollout_whose_old_version_is_closed_cannot_be_rolled_back(self) -> None:
        done = steps.with_state(steps.promote(running(), now=50.0), "small@v1", MemberState.CLOSED, now=55.0)
        with pytest.raises(Conflict, match="small@v1 is closed"):
            steps.rollback(done, now=60.0)

    def test_an_abort_for_errors_fails_the_version_so_that_its_sessions_are_moved(self) -> None:
        over = steps.abort(running(), now=50.0, reason="errs", moves=True)
        assert state_of(over, "small@v2") is MemberState.FAILED
        assert (rollout_of(over).state, rollout_of(over).reason) == (RolloutState.ABORTED, "errs")

    def test_an_abort_for_slowness_drains_it_as_a_rollback_does(self) -> None:
        over = steps.abort(running(), now=50.0, reason="slower", moves=False)
        assert state_of(over, "small@v2") is MemberState.DRAINING

    def test_a_rollout_that_waits_has_no_sessions_and_its_version_does_not_fail(self) -> None:
        over = steps.abort(waiting(), now=50.0, reason="a golden prompt", moves=True)
        assert state_of(over, "small@v2") is MemberState.DRAINING
        steps.start(over, planned(rollout_id="ro_2"))

    @pytest.mark.parametrize(
        "act",
        [
            lambda each: steps.rollback(each, now=50.0),
            lambda each: steps.abort(each, now=50.0, reason="a golden prompt", moves=False),
        ],
    )
    def test_a_version_that_was_never_ready_drains_too_and_gives_its_letter_back(
        self, act: Callable[[Deployment], Deployment]
    ) -> None:
        small = steps.with_state(waiting(), "small@v2", MemberState.REGISTERED, now=1.0)
        over = act(small)
        assert state_of(over, "small@v2") is MemberState.DRAINING
        steps.start(over, planned(rollout_id="ro_2"))

    @pytest.mark.parametrize(
        "golden",
        [
            Golden(prompt="2+2=", expected="4", max_tokens=0),
            Golden(prompt="2+2=", expected="4", max_tokens=4097),
            Golden(prompt="", expected="4"),
            Golden(prompt="2+2=", expected=""),
        ],
    )
    def test_a_golden_prompt_that_cannot_be_asked_or_says_nothing_is_refused(self, golden: Golden) -> None:
        with pytest.raises(InvalidInput, match="of a golden prompt must"):
            steps.start(deployment(), replace(planned(), golden=(golden,)))

    @pytest.mark.parametrize(
        "act",
        [
            lambda each: steps.step(each, now=1.0),
            steps.pause,
            lambda each: steps.resume(each, now=1.0),
            lambda each: steps.promote(each, now=1.0),
            lambda each: steps.rollback(each, now=1.0),
            lambda each: steps.abort(each, now=1.0, reason="", moves=True),
        ],
    )
    def test_without_a_rollout_under_way_every_step_is_refused(self, act: Callable[[Deployment], Deployment]) -> None:
        with pytest.raises(Conflict, match="'small' has no rollout"):
            act(deployment())
        with pytest.raises(Conflict, match="is rolled_back"):
            act(steps.rollback(running(), now=50.0))


class TestNextStep:
    def rollout(self, state: RolloutState = RolloutState.RUNNING, step: int = 0, bake_s: float = 60.0) -> Rollout:
        return replace(planned(bake_s=bake_s), state=state, step=step, stepped=100.0)

    def test_a_step_lasts_its_bake_time(self) -> None:
        assert next_step(self.rollout(), 159.9, Verdict()) is Action.NOTHING
        assert next_step(self.rollout(), 160.0, Verdict()) is Action.STEP
        assert next_step(self.rollout(step=2), 160.0, Verdict()) is Action.PROMOTE

    def test_without_a_bake_time_it_is_stepped_by_hand(self) -> None:
        assert next_step(self.rollout(bake_s=0.0), 1e9, Verdict()) is Action.NOTHING

    def test_a_doubt_holds_the_step(self) -> None:
        assert next_step(self.rollout(), 1e9, DOUBT) is Action.NOTHING

    @pytest.mark.parametrize("state", [RolloutState.RUNNING, RolloutState.PAUSED])
    def test_a_worse_version_is_aborted_at_once_even_in_a_pause(self, state: RolloutState) -> None:
        assert next_step(self.rollout(state), 100.0, WORSE) is Action.ABORT

    def test_a_paused_rollout_takes_no_step(self) -> None:
        assert next_step(self.rollout(RolloutState.PAUSED), 1e9, Verdict()) is Action.NOTHING

    @pytest.mark.parametrize("state", [RolloutState.WAITING, *(each for each in RolloutState if each.is_over)])
    def test_nothing_is_due_of_a_rollout_that_waits_or_is_over(self, state: RolloutState) -> None:
        assert next_step(self.rollout(state), 1e9, WORSE) is Action.NOTHING


class Rollouts(RuleBasedStateMachine):
    """Any sequence of steps, of people and of the leader, on a deployment of three versions."""

    def __init__(self) -> None:
        super().__init__()
        small = deployment()
        self.deployment = replace(
            small, members=(*small.members, Member(version="small@v3", letter="c", state=MemberState.READY))
        )
        self.now, self.num = 100.0, 0

    def act(self, change: Callable[[Deployment], Deployment]) -> None:
        before = self.deployment
        self.now += 1.0
        try:
            after = change(before)
        except Conflict:
            return
        self.check(before, after)
        self.deployment = after

    def check(self, before: Deployment, after: Deployment) -> None:
        old, new = before.rollout, after.rollout
        assert new is not None
        if old is not None and old.id != new.id:
            assert old.state.is_over
        if old is not None and old.id == new.id:
            assert new.new == old.new
            if old.share and new.share:
                assert new.share >= old.share
            assert old.state is not RolloutState.ROLLED_BACK
            assert old.state is not RolloutState.ABORTED
        if after.stable != before.stable:
            assert new.state is RolloutState.PROMOTED or (
                new.state is RolloutState.ROLLED_BACK and old is not None and old.state is RolloutState.PROMOTED
            )

    @rule(new=st.sampled_from(["small@v1", "small@v2", "small@v3"]))
    def start(self, new: str) -> None:
        self.num += 1
        self.act(lambda each: steps.start(each, replace(planned(new, f"ro_{self.num}"), began=self.now)))

    @rule(cold=st.sampled_from([(), ("gold",)]))
    def begin(self, cold: tuple[str, ...]) -> None:
        self.act(lambda each: steps.begin(each, cold_pools=cold, now=self.now))
        if cold and (rollout := self.deployment.rollout) and rollout.state is RolloutState.WAITING:
            assert rollout.share == 0

    @rule()
    def step(self) -> None:
        self.act(lambda each: steps.step(each, now=self.now))

    @rule()
    def pause(self) -> None:
        self.act(steps.pause)

    @rule()
    def resume(self) -> None:
        self.act(lambda each: steps.resume(each, now=self.now))

    @rule()
    def promote(self) -> None:
        self.act(lambda each: steps.promote(each, now=self.now))

    @rule()
    def rollback(self) -> None:
        self.act(lambda each: steps.rollback(each, now=self.now))

    @rule(moves=st.booleans())
    def abort(self, moves: bool) -> None:
        self.act(lambda each: steps.abort(each, now=self.now, reason="worse", moves=moves))

    @invariant()
    def the_stable_version_is_ready(self) -> None:
        member = self.deployment.member(self.deployment.stable)
        assert member is not None
        assert member.state is MemberState.READY

    @invariant()
    def only_a_version_that_is_ready_gets_new_sessions(self) -> None:
        for key in ("a", "b", "c"):
            member = self.deployment.member(first_version(self.deployment, key, is_fresh=True))
            assert member is not None
            assert member.state is MemberState.READY

    @invariant()
    def the_versions_stay_the_same(self) -> None:
        assert [member.version for member in self.deployment.members] == ["small@v1", "small@v2", "small@v3"]


TestRollouts = Rollouts.TestCase
TestRollouts.settings = settings(max_examples=examples(200), stateful_step_count=30, deadline=None)
