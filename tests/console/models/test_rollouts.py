"""``axon rollouts`` and ``axon rollback``, from a shell."""

import asyncio
import json
from pathlib import Path

import pytest

from axon.adapters.store.sqlite import SqliteStore
from axon.domain.registry import steps
from axon.domain.registry.deployment import Deployment, MemberState
from axon.registry.catalog import Catalog
from axon.registry.writer import RegistryWriter
from axon.runtime.clock import SystemClock
from tests.console.models.test_registry import refused, said, small
from tests.console.program import Axon
from tests.domain.registry.builders import nobody_pinned

assert small  # the fixture


@pytest.fixture
def deployed(small: Axon) -> Axon:
    said(small, "deployments", "create", "chat", "--model", "small", "--version", "v1")
    return small


def warm(tmp_path: Path) -> None:
    """What control's leader does when the new version has workers."""

    def change(old: Deployment) -> Deployment:
        for version in ("small@v1", "small@v2"):
            old = steps.with_state(old, version, MemberState.READY, now=1.0)
        return steps.begin(old, cold_pools=(), now=2.0)

    async def act() -> None:
        store = SqliteStore(tmp_path / "data" / "axon.db")
        await store.open()
        catalog = Catalog(
            store.registry, RegistryWriter(store.registry, SystemClock()), SystemClock(), pinned=nobody_pinned
        )
        await catalog.change_deployment("chat", change, actor="control")
        await store.aclose()

    asyncio.run(act())


def test_a_rollout_is_started_stepped_paused_and_rolled_back(deployed: Axon, tmp_path: Path) -> None:
    started = said(deployed, "rollouts", "start", "chat", "v2", "--steps", "5,50,100", "--bake", "0s")
    assert started == "The rollout of small@v2 in chat waits until it has a worker in every pool.\n"
    refused(deployed, 1, "A rollout of small@v2 is waiting in 'chat'", "rollouts", "start", "chat", "v2")
    warm(tmp_path)
    shown = json.loads(said(deployed, "rollouts", "status", "chat", "--json"))
    assert (shown["state"], shown["share"], shown["bake_s"]) == ("running", 5, 0)
    assert "50 % of new sessions begin on it" in said(deployed, "rollouts", "step", "chat")
    assert "is paused" in said(deployed, "rollouts", "pause", "chat")
    assert "goes on" in said(deployed, "rollouts", "resume", "chat")
    table = said(deployed, "rollouts", "status", "chat")
    assert "2 of 3: 5 %, 50 %, 100 %" in table
    assert "by hand" in table
    assert "the stable version is small@v1" in said(deployed, "rollback", "chat", "--reason", "a doubt")
    assert "a doubt" in said(deployed, "rollouts", "status", "chat")


def test_a_rollout_is_promoted_and_another_aborted(deployed: Axon, tmp_path: Path) -> None:
    said(deployed, "rollouts", "start", "chat", "small@v2")
    warm(tmp_path)
    assert "the stable version is small@v2" in said(deployed, "rollouts", "promote", "chat")
    said(deployed, "rollback", "chat")
    said(deployed, "rollouts", "start", "chat", "v2")
    warm(tmp_path)
    over = json.loads(said(deployed, "rollouts", "abort", "chat", "--reason", "it swears", "--json"))
    assert (over["state"], over["reason"]) == ("aborted", "it swears")
    assert [each["state"] for each in over["versions"]] == ["ready", "failed"]


def test_golden_prompts_and_bounds_come_from_a_file_and_flags(deployed: Axon, tmp_path: Path) -> None:
    golden = tmp_path / "golden.json"
    golden.write_text('[{"prompt": "The capital of France?", "expected": "Paris"}]')
    flags = ("--golden", str(golden), "--tolerate", "slower=2", "--tolerate", "min_samples=50", "--json")
    started = json.loads(said(deployed, "rollouts", "start", "chat", "v2", *flags))
    assert started["golden"][0]["expected"] == "Paris"
    assert (started["tolerance"]["slower"], started["tolerance"]["min_samples"]) == (2, 50)


def test_misuse_is_told_on_one_line(deployed: Axon, tmp_path: Path) -> None:
    golden = tmp_path / "golden.json"
    golden.write_text('[{"prompt": 1, "expected": "Paris"}]')
    start = ("rollouts", "start", "chat", "v2")
    refused(deployed, 2, "write percentages", *start, "--steps", "some")
    refused(deployed, 2, "Each step must be more", *start, "--steps", "50,10")
    refused(deployed, 2, "Each step must be above 0", *start, "--steps", "nan")
    refused(deployed, 2, "Each step must be above 0", *start, "--steps", "1e308")
    refused(deployed, 2, "write a number and s, m, h", *start, "--bake", "long")
    refused(deployed, 2, "it must be a JSON list", *start, "--golden", str(golden))
    golden.write_text('[{"prompt": "2+2=", "expected": "4", "max_tokens": -1}]')
    refused(deployed, 2, "'max_tokens' of a golden prompt must be", *start, "--golden", str(golden))
    refused(deployed, 2, "names are min_samples", *start, "--tolerate", "speed=2")
    refused(deployed, 2, "is no number", *start, "--tolerate", "slower=much")
    refused(deployed, 1, "There is no version 'small@v9'", "rollouts", "start", "chat", "v9")
    refused(deployed, 1, "never had a rollout", "rollouts", "status", "chat")
    refused(deployed, 1, "has no rollout to roll back", "rollback", "chat")
    refused(deployed, 1, "There is no deployment 'none'", "rollouts", "status", "none")
