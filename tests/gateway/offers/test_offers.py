import asyncio
from dataclasses import replace

import pytest

from axon.domain.registry.deployment import Alias, Member
from axon.errors import NotFound, Unavailable
from axon.runtime.clock import FakeClock
from tests.domain.registry.builders import deployment, snapshot
from tests.gateway.offers.builders import FakeView, make_announced, make_offers, said


def everything(name: str) -> bool:
    return True


def test_each_name_finds_its_own_offer(clock: FakeClock) -> None:
    small, large = (make_announced(name, clock, served=said("a").deployment) for name in ("small", "large"))
    offers = make_offers(clock, small, large)
    assert [offers.find(name, everything).offer for name in ("small", "large")] == [small, large]


def test_an_unknown_name_is_told_what_the_tenant_may_use(clock: FakeClock) -> None:
    offers = make_offers(clock, *(make_announced(name, clock) for name in ("small", "large", "secret")))
    with pytest.raises(NotFound, match=r"Available: small, large\."):
        offers.find("huge", lambda name: name != "secret")
    with pytest.raises(NotFound, match=r"Available: none\."):
        offers.find("small", lambda name: False)


def test_one_that_no_worker_was_seen_for_does_not_hide_the_others(clock: FakeClock) -> None:
    offers = make_offers(
        clock, make_announced("small", clock), make_announced("large", clock, served=said("a").deployment)
    )
    with pytest.raises(Unavailable, match="No worker of 'small'"):
        offers.find("small", everything)
    assert offers.are_known
    assert len(offers.listed(everything)) == 1


def test_nothing_is_known_before_the_first_worker(clock: FakeClock) -> None:
    assert not make_offers(clock, make_announced("small", clock)).are_known
    assert make_offers(clock, make_announced("small", clock)).problem().code == "no_worker"
    assert make_offers(clock).problem().code == "no_model"


def test_each_deployment_has_a_rate_of_its_own(clock: FakeClock) -> None:
    busy = said("a")
    busy = replace(busy, load=replace(busy.load, tokens_per_s=100.0, free_slots=0))
    offers = make_offers(clock, small := make_announced("small", clock), make_announced("large", clock))
    small.fleet.learn([busy])
    assert [offers.tokens_per_s(name, "") for name in ("small", "large", "gone")] == [100.0, None, None]


class TestRegistered:
    def view(self) -> FakeView:
        aliases = {"fast": Alias(name="fast", deployment="small", created=1.0)}
        return FakeView(replace(snapshot(deployment()), aliases=aliases))

    def test_a_deployment_an_alias_and_a_version_are_found(self, clock: FakeClock) -> None:
        offers = make_offers(clock, view=self.view())
        found = [offers.find(name, everything) for name in ("small", "fast", "fast@v2")]
        assert [(each.offer.name, each.version) for each in found] == [
            ("small", ""),
            ("small", ""),
            ("small", "small@v2"),
        ]
        assert found[0].offer is found[1].offer

    def test_a_record_goes_before_a_model_of_the_settings(self, clock: FakeClock) -> None:
        offers = make_offers(clock, make_announced("small", clock), view=self.view())
        assert offers.find("small", everything).offer.deployment == deployment()
        assert len(offers.listed(everything)) == 1

    def test_what_is_registered_later_is_found_and_what_is_removed_is_not(self, clock: FakeClock) -> None:
        view = FakeView()
        offers = make_offers(clock, view=view)
        with pytest.raises(NotFound):
            offers.find("small", everything)
        view.snapshot = self.view().snapshot
        assert offers.find("small", everything).offer.name == "small"
        view.snapshot = snapshot()
        with pytest.raises(NotFound):
            offers.find("small", everything)

    def test_what_is_removed_leaves_the_metrics(self, clock: FakeClock) -> None:
        view = self.view()
        offers = make_offers(clock, view=view)
        registry = offers.find("small", everything).offer.fleet._metrics.registry
        asyncio.run(offers.look())
        assert registry.get_sample_value("axon_workers", {"model": "small"}) == 0
        view.snapshot = snapshot()
        asyncio.run(offers.look())
        assert registry.get_sample_value("axon_workers", {"model": "small"}) is None

    def test_an_alias_knows_the_versions_that_its_sessions_may_have_had_before_a_switch(self, clock: FakeClock) -> None:
        view = self.view()
        other = replace(deployment(name="other"), members=(Member(version="other@v1"),))
        view.snapshot = replace(view.snapshot, deployments={**view.snapshot.deployments, "other": other})
        offers = make_offers(clock, view=view)
        assert offers.find("fast", everything).elsewhere == {"other@v1"}
        assert offers.find("small", everything).elsewhere == frozenset()

    def test_a_tenant_that_may_use_an_alias_uses_it_by_that_name_only(self, clock: FakeClock) -> None:
        offers = make_offers(clock, view=self.view())
        assert offers.find("fast@v2", lambda name: name == "fast").version == "small@v2"
        with pytest.raises(NotFound):
            offers.find("small", lambda name: name == "fast")

    def test_one_without_a_version_says_so(self, clock: FakeClock) -> None:
        view = FakeView(snapshot(replace(deployment(), stable="")))
        with pytest.raises(Unavailable, match="no version to serve yet"):
            make_offers(clock, view=view).find("small", everything)
