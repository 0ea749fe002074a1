"""The registry, its rollouts and its drains survive what goes wrong, and each broken rule is noticed."""

import contextlib
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from axon.domain.registry import record
from axon.domain.registry.deployment import Deployment
from axon.domain.registry.snapshot import Snapshot, first_version
from axon.registry.follower import RegistryFollower
from axon.registry.holders import Holders
from tests.sim import registering
from tests.sim.registering import run
from tests.sim.search import report

SCHEDULES = range(4)
MOST_SCHEDULES = 60
FOUND_AT = {
    "follower_accepts_a_lower_revision": 2,
    "registry_write_without_comparing": 1,
    "stale_view_starts_sessions_on_the_canary": 9,
    "turn_accepted_without_another_look": 55,
    "version_removed_without_waiting_for_gateways": 4,
}
"""The first schedule that found the broken rule: the search begins there, and goes on from there when schedules have
changed."""


def registry_write_without_comparing() -> contextlib.AbstractContextManager[Any]:
    return patch.object(record, "is_unchanged", lambda old, stored: True)


def follower_accepts_a_lower_revision() -> contextlib.AbstractContextManager[Any]:
    async def ask_store(self: RegistryFollower, began: float, told: int | None = None) -> None:
        found: Snapshot = await self._store.snapshot()
        self._snapshot, self._store_at = found, began
        self._confirm(began)
        self._changed(found)

    return patch.object(RegistryFollower, "_ask_store", ask_store)


def version_removed_without_waiting_for_gateways() -> contextlib.AbstractContextManager[Any]:
    async def behind(self: Holders, revision: int) -> frozenset[str]:
        return frozenset()

    return patch.object(Holders, "behind", behind)


def turn_accepted_without_another_look() -> contextlib.AbstractContextManager[Any]:
    """A gateway accepts a turn on the version that was right when its prompt began to be rendered."""
    return patch.object(registering, "check_open", lambda deployment, version, *, is_awaited: None)


def stale_view_starts_sessions_on_the_canary() -> contextlib.AbstractContextManager[Any]:
    def fresh(deployment: Deployment, key: str, *, is_fresh: bool) -> str:
        return first_version(deployment, key, is_fresh=True)

    return patch.object(registering, "first_version", fresh)


MUTANTS: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
    mutant.__name__: mutant
    for mutant in (
        registry_write_without_comparing,
        follower_accepts_a_lower_revision,
        version_removed_without_waiting_for_gateways,
        turn_accepted_without_another_look,
        stale_view_starts_sessions_on_the_canary,
    )
}


@pytest.mark.parametrize("seed", SCHEDULES)
def test_no_schedule_breaks_a_promise(seed: int) -> None:
    outcome = run(seed)
    assert not outcome.violation, report(outcome)
    assert outcome.num_turns > 50  # something was going on


@pytest.mark.long
@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_rule_is_found(name: str) -> None:
    first = FOUND_AT.get(name, 0)
    with MUTANTS[name]():
        assert any(run(seed).violation for seed in range(first, first + MOST_SCHEDULES)), f"{name} went unnoticed"


def test_a_seed_gives_the_same_history_again() -> None:
    assert run(3).events == run(3).events
