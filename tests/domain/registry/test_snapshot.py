from dataclasses import replace
from unittest.mock import patch

import pytest

from axon.domain.registry import snapshot as snapshot_module
from axon.domain.registry.deployment import Alias, Deployment, Member, MemberState
from axon.domain.registry.price import Price
from axon.domain.registry.rollout import WHOLE, RolloutState, bucket_of
from axon.domain.registry.snapshot import Named, check_open, find, first_version, price_of
from axon.domain.registry.steps import with_state
from axon.errors import Unavailable
from tests.domain.registry.builders import deployment, rollout, snapshot

KEYS = [f"session-{number}" for number in range(400)]


class TestFind:
    def test_a_deployment_is_found_by_its_name(self) -> None:
        small = deployment()
        assert find(snapshot(small), "small") == Named(small)

    def test_an_alias_means_its_deployment(self) -> None:
        small = deployment()
        view = replace(snapshot(small), aliases={"fast": Alias(name="fast", deployment="small", created=1.0)})
        assert find(view, "fast") == Named(small)
        assert find(view, "fast@v2") == Named(small, "small@v2")

    def test_a_version_is_asked_for_by_its_label(self) -> None:
        small = deployment()
        assert find(snapshot(small), "small@v2") == Named(small, "small@v2")

    def test_a_name_with_an_at_of_its_own_is_a_name_first(self) -> None:
        odd = deployment(name="small@v2")
        assert find(snapshot(deployment(), odd), "small@v2") == Named(odd)

    @pytest.mark.parametrize("name", ["", "large", "small@", "small@v9", "@v1", "large@v1"])
    def test_anything_else_is_not_found(self, name: str) -> None:
        assert find(snapshot(deployment()), name) is None

    def test_an_alias_of_a_removed_deployment_is_not_found(self) -> None:
        view = replace(snapshot(), aliases={"fast": Alias(name="fast", deployment="small", created=1.0)})
        assert find(view, "fast") is None


class TestFirstVersion:
    def test_without_a_rollout_it_is_the_stable_one(self) -> None:
        assert {first_version(deployment(), key, is_fresh=True) for key in KEYS} == {"small@v1"}

    def test_a_rollout_gives_the_new_version_the_sessions_below_its_share(self) -> None:
        small = deployment(going=rollout(share=3000))
        for key in KEYS:
            expected = "small@v2" if bucket_of("ro_1", key) < 3000 else "small@v1"
            assert first_version(small, key, is_fresh=True) == expected

    def test_a_larger_share_takes_no_session_away_from_the_new_version(self) -> None:
        few, many = (deployment(going=rollout(share=share)) for share in (1000, 6000))
        new = [key for key in KEYS if first_version(few, key, is_fresh=True) == "small@v2"]
        assert all(first_version(many, key, is_fresh=True) == "small@v2" for key in new)

    def test_that_is_noticed_where_buckets_are_salted_by_the_step(self) -> None:
        few, many = (deployment(going=rollout(share=share)) for share in (1000, 5000))
        new = [key for key in KEYS if first_version(few, key, is_fresh=True) == "small@v2"]
        salted = patch.object(snapshot_module, "bucket_of", lambda rollout_id, key: bucket_of(f"{rollout_id}/1", key))
        with salted:
            assert not all(first_version(many, key, is_fresh=True) == "small@v2" for key in new)

    def test_a_view_that_is_not_fresh_begins_on_the_stable_version_only(self) -> None:
        small = deployment(going=rollout(share=WHOLE))
        assert {first_version(small, key, is_fresh=False) for key in KEYS} == {"small@v1"}

    def test_no_session_begins_on_a_version_that_has_lost_its_workers(self) -> None:
        small = deployment(going=rollout(share=WHOLE))
        assert {first_version(small, key, is_fresh=True, gone={"small@v2"}) for key in KEYS} == {"small@v1"}

    @pytest.mark.parametrize("state", [RolloutState.WAITING, RolloutState.ROLLED_BACK, RolloutState.ABORTED])
    def test_a_rollout_that_waits_or_was_taken_back_gives_nothing(self, state: RolloutState) -> None:
        small = deployment(going=rollout(share=WHOLE, state=state))
        assert {first_version(small, key, is_fresh=True) for key in KEYS} == {"small@v1"}

    @pytest.mark.parametrize("state", [each for each in MemberState if each is not MemberState.READY])
    def test_a_version_that_is_not_ready_gets_no_new_session(self, state: MemberState) -> None:
        small = deployment(going=rollout(share=WHOLE))
        members = (small.members[0], Member(version="small@v2", letter="b", state=state))
        assert first_version(replace(small, members=members), "key", is_fresh=True) == "small@v1"


class TestPriceOf:
    def price(self, name: str, since: float, version: str = "") -> Price:
        return Price(id=name, model="small", version=version, prompt=1.0, since=since)

    def test_the_latest_price_that_has_begun_holds(self) -> None:
        view = replace(snapshot(), prices=(self.price("old", 10), self.price("new", 20), self.price("later", 30)))
        found = [price_of(view, "small@v1", at=at) for at in (9, 10, 19, 20, 29)]
        assert [price and price.id for price in found] == [None, "old", "old", "new", "new"]

    def test_a_versions_own_price_goes_before_its_models(self) -> None:
        view = replace(snapshot(), prices=(self.price("all", 20), self.price("own", 10, "small@v2")))
        first, second = price_of(view, "small@v1", at=25), price_of(view, "small@v2", at=25)
        assert [price and price.id for price in (first, second)] == ["all", "own"]

    def test_another_models_price_does_not_hold(self) -> None:
        assert price_of(replace(snapshot(), prices=(self.price("all", 1),)), "large@v1", at=5) is None


class TestOpen:
    @pytest.mark.parametrize("state", [each for each in MemberState if each is not MemberState.CLOSED])
    def test_a_turn_of_a_version_that_is_not_closed_may_be_accepted(self, state: MemberState) -> None:
        check_open(deployment_with(state), "small@v2", is_awaited=True)

    @pytest.mark.parametrize("version", ["small@v2", "small@v9"])
    def test_no_turn_of_a_closed_or_removed_version_is_accepted(self, version: str) -> None:
        with pytest.raises(Unavailable) as refusal:
            check_open(deployment_with(MemberState.CLOSED), version, is_awaited=True)
        assert refusal.value.code == "version_closed"
        with pytest.raises(Unavailable):
            check_open(None, version, is_awaited=True)

    def test_no_turn_is_accepted_by_a_process_that_nobody_waits_for(self) -> None:
        with pytest.raises(Unavailable) as refusal:
            check_open(deployment(), "small@v1", is_awaited=False)
        assert refusal.value.code == "registry_unavailable"


def deployment_with(state: MemberState) -> Deployment:
    """A deployment whose second version is in this state."""
    return with_state(deployment(), "small@v2", state, now=1.0)
