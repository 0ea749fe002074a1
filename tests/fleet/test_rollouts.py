"""Rollouts under load: new sessions go to the new version, and no conversation notices."""

import json
from collections.abc import Callable
from math import sqrt

import pytest

from tests.fleet.fleet import Fleet
from tests.fleet.talks import Talks
from tests.fleet.versions import MODEL, Registry, sent
from tests.journeys.server import wait_until

V1, V2 = "small@v1", "small@v2"


def few_beyond(found: int, of: int, share: float) -> bool:
    """Whether a number of successes is within five standard deviations of a binomial distribution's mean."""
    return abs(found - of * share) <= 5 * sqrt(max(1.0, of * share * (1 - share)))


def begun(registry: Registry) -> bool:
    return bool(registry.rollout()["state"] == "running")


@pytest.mark.services
@pytest.mark.long("rollouts")
def test_conversations_keep_their_version_while_a_rollout_goes_up_is_rolled_back_and_is_run_again(
    fresh: Callable[..., Fleet],
) -> None:
    fleet = fresh().start(gateways=2, workers=1)
    with Registry(fleet) as registry:
        registry.add("v1")
        for _ in range(2):
            registry.worker("v1")
        registry.add("v2")
        urls = [gateway.url for gateway in fleet.gateways]
        wait_until(lambda: registry.members()[V1] == "ready", "the first version is ready")
        with Talks(urls, fleet.key, width=6, length=5, pause_s=0.05) as talks:

            def more(num: int) -> int:
                """The number of conversations, once as many more have begun."""
                before = len(talks.talks)
                wait_until(lambda: len(talks.talks) >= before + num or talks.problems, "they talk on", 60)
                return before

            more(8)
            registry.rollout(version="v2", steps=[50, 100], bake_s=0)
            for _ in range(2):
                registry.worker("v2")
            wait_until(lambda: begun(registry), "the new version is warm")
            at_half = more(40)
            half = talks.first_versions(at_half + 6)
            assert few_beyond(half[V2], half.total(), 0.5), half
            registry.rollout("rollback")
            back = more(6) + 6  # those that began while it was rolled back are not counted
            more(12)
            assert talks.first_versions(back).keys() == {V1}
            assert registry.members() == {V1: "ready", V2: "draining"}
            registry.rollout(version="v2", steps=[100], bake_s=0)
            wait_until(lambda: begun(registry), "it runs again")
            again = more(6) + 6
            more(12)
            assert talks.first_versions(again).keys() == {V2}
            registry.rollout("promote")
            more(6)
        assert talks.problems == []
        assert all(talk.is_kept and not talk.moves for talk in talks.talks)
        assert registry.members() == {V1: "draining", V2: "ready"}


@pytest.mark.services
def test_sessions_of_an_aborted_version_are_moved_and_told(fresh: Callable[..., Fleet]) -> None:
    fleet = fresh().start(gateways=1, workers=1)
    with Registry(fleet) as registry, fleet.client(fleet.gateways[0].url) as http:
        registry.add("v1")
        registry.worker("v1")
        registry.add("v2")
        registry.rollout(version="v2", steps=[100], bake_s=0)
        registry.worker("v2")
        wait_until(lambda: begun(registry), "the new version is warm")

        def ask(session: str) -> tuple[str, dict[str, str] | None]:
            body = {"model": MODEL, "prompt": "abc", "max_tokens": 8}
            found = sent(http.post("/v1/completions", json=body, headers={"x-axon-session": session}))
            return found["choices"][0]["text"], found.get("axon", {}).get("moved")

        wait_until(lambda: ask("first")[0] == "bca" or ask("other")[0] == "bca", "new sessions begin on it")
        sessions = [f"s{number}" for number in range(5)]
        assert [ask(session)[0] for session in sessions] == ["bca"] * 5
        registry.rollout("abort")
        wait_until(lambda: ask(sessions[0])[0] == "abc", "it is moved")
        for session in sessions[1:]:
            text, moved = ask(session)
            assert (text, moved) == ("abc", {"from": V2, "to": V1, "reason": "version_failed"})
            assert ask(session) == ("abc", None), "a move is told once"
        assert fleet.gateways[0].metric("axon_sessions_moved_total") >= 5


@pytest.mark.services
def test_a_version_is_asked_for_by_name_and_a_session_stays_where_it_is(fresh: Callable[..., Fleet]) -> None:
    fleet = fresh().start(gateways=1, workers=1)
    made = fleet.axon("keys", "create", "--scope", "inference", "--scope", "versions", "--json")
    with Registry(fleet) as registry, fleet.client(fleet.gateways[0].url) as http:
        registry.add("v1")
        registry.worker("v1")
        body = {"prompt": "abc", "max_tokens": 8}
        headers = {"x-axon-session": "mine"}
        wait_until(lambda: http.get(f"/v1/models/{MODEL}").status_code == 200, "it is registered")
        refused = http.post("/v1/completions", json={**body, "model": "small@v1"}, headers=headers)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "insufficient_permissions")
        http.headers["Authorization"] = f"Bearer {json.loads(made)['key']}"
        named = sent(http.post("/v1/completions", json={**body, "model": "small@v1"}, headers=headers))
        assert named["system_fingerprint"] == V1
        assert http.post("/v1/completions", json={**body, "model": "small@v7"}).status_code == 404
        registry.add("v2")
        registry.rollout(version="v2", steps=[100], bake_s=0)
        registry.worker("v2")
        wait_until(lambda: begun(registry), "the new version is warm")
        other = http.post("/v1/completions", json={**body, "model": "small@v2"}, headers=headers)
        assert (other.status_code, other.json()["error"]["code"]) == (409, "version_pinned")
        assert (
            sent(http.post("/v1/completions", json={**body, "model": MODEL}, headers=headers))["system_fingerprint"]
            == V1
        )
