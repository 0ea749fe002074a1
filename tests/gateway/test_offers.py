from types import SimpleNamespace
from typing import Any

import pytest

from axon.errors import NotFound, Unavailable
from axon.gateway.offers import Offer, Offers
from axon.sessions.prompt import Prompts
from axon.text.tokenizer import load_tokenizer
from tests.contracts.builders import make_presence


def everything(name: str) -> bool:
    return True


def make_offer(name: str, *, known: bool = True, max_model_len: int = 2048, rate: float | None = None) -> Offer:
    served = SimpleNamespace(name=name, max_model_len=max_model_len)
    fleet: Any = SimpleNamespace(
        name=name,
        known=known,
        deployment=served,
        problem=lambda: Unavailable(f"No worker of {name}.", code="no_worker"),
        tokens_per_s=lambda pool: rate,
    )
    return Offer(fleet, Prompts(load_tokenizer(None), None))


def test_each_name_finds_its_own_offer() -> None:
    offers = Offers([make_offer("small"), make_offer("large")])
    assert [offers.find(name, everything).name for name in ("small", "large")] == ["small", "large"]


def test_an_unknown_name_is_told_what_the_tenant_may_use() -> None:
    offers = Offers([make_offer("small"), make_offer("large"), make_offer("secret")])
    with pytest.raises(NotFound, match=r"Available: small, large\."):
        offers.find("huge", lambda name: name != "secret")
    with pytest.raises(NotFound, match=r"Available: none\."):
        offers.find("huge", lambda name: False)


def test_one_that_no_worker_was_seen_for_is_found_later_and_does_not_hide_the_others() -> None:
    offers = Offers([make_offer("small", known=False), make_offer("large")])
    with pytest.raises(Unavailable, match="No worker of small"):
        offers.find("small", everything)
    assert offers.known
    assert [served.name for served in offers.listed(everything)] == ["large"]


def test_nothing_is_known_before_the_first_worker() -> None:
    offers = Offers([make_offer("small", known=False)])
    assert not offers.known
    assert offers.problem().code == "no_worker"


def test_prompts_are_bounded_by_their_own_models_context() -> None:
    short, long = make_offer("short", max_model_len=100), make_offer("long", max_model_len=4000)
    assert (short.prompts.max_model_len, long.prompts.max_model_len) == (100, 4000)
    assert short.prompts is short.prompts


def test_each_deployment_has_a_rate_of_its_own() -> None:
    offers = Offers([make_offer("small", rate=100.0), make_offer("large", rate=20.0)])
    assert [offers.tokens_per_s(name, "") for name in ("small", "large", "gone")] == [100.0, 20.0, None]


def test_a_served_version_is_what_its_workers_announce() -> None:
    served = make_presence().deployment
    fleet: Any = SimpleNamespace(name="small", known=True, deployment=served)
    assert Offer(fleet, Prompts(load_tokenizer(None), None)).served is served
