"""``axon models``, ``deployments``, ``aliases`` and ``prices``: the registry from a shell."""

import asyncio
import json
from pathlib import Path

import pytest

from axon.adapters.store.sqlite import SqliteStore
from axon.domain.registry.model import Model
from axon.registry.catalog import Catalog
from axon.registry.writer import RegistryWriter
from axon.runtime.clock import SystemClock
from tests.console.program import Axon
from tests.domain.registry.builders import nobody_pinned, version


@pytest.fixture
def small(tmp_path: Path, axon: Axon) -> Axon:
    """The program over a store with a model of two versions."""

    async def fill() -> None:
        store = SqliteStore(tmp_path / "data" / "axon.db")
        await store.open()
        catalog = Catalog(
            store.registry, RegistryWriter(store.registry, SystemClock()), SystemClock(), pinned=nobody_pinned
        )
        model = Model(name="small", max_model_len=8192, licence="mit", created=0.0)
        await catalog.add_model(model, version("v1"), actor="test")
        await catalog.add_version(version("v2"), actor="test")
        await store.aclose()

    asyncio.run(fill())
    return axon


def said(axon: Axon, *arguments: str) -> str:
    ran = axon(*arguments)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def refused(axon: Axon, code: int, words: str, *arguments: str) -> None:
    ran = axon(*arguments)
    assert (ran.returncode, ran.stdout, len(ran.stderr.splitlines())) == (code, "", 1), (ran.stdout, ran.stderr)
    assert words in ran.stderr


def test_a_deployment_is_made_shown_changed_and_removed(small: Axon) -> None:
    assert said(small, "deployments", "create", "small", "--model", "small", "--version", "v1") == (
        "Deployment small is made: sessions begin on small@v1.\n"
    )
    (listed,) = json.loads(said(small, "deployments", "list", "--json"))
    assert (listed["id"], listed["stable"], listed["max_replicas"]) == ("small", "small@v1", 1)
    changed = said(small, "deployments", "change", "small", "--max-replicas", "3", "--idle", "10m", "--json")
    new = json.loads(changed)
    assert (new["max_replicas"], new["idle_s"], new["patience_s"]) == (3, 600.0, 60.0)
    hot = said(
        small, "deployments", "change", "small", "--hot", "--cold-patience", "2m", "--min-replicas", "0", "--json"
    )
    new = json.loads(hot)
    assert (new["hot"], new["cold_patience_s"], new["min_replicas"]) == (True, 120.0, 0)
    new = json.loads(said(small, "deployments", "change", "small", "--no-hot", "--min-replicas", "1", "--json"))
    assert (new["hot"], new["cold_patience_s"]) == (False, 120.0)
    refused(small, 1, "has changed meanwhile", "deployments", "change", "small", "--pool", "x", "--revision", "1")
    shown = said(small, "deployments", "show", "small")
    assert "1 to 3" in shown
    assert "small@v1" in shown
    assert "registered" in said(small, "deployments", "list")
    assert said(small, "deployments", "remove", "small") == "Deployment small is removed.\n"
    assert json.loads(said(small, "deployments", "list", "--json")) == []


def test_a_deployments_autoscaler_is_set_and_shown(small: Axon) -> None:
    said(small, "deployments", "create", "small", "--model", "small", "--version", "v1", "--max-replicas", "8")
    change = ("deployments", "change", "small")
    new = json.loads(
        said(
            small, *change, "--utilisation", "0.6", "--target-wait", "5s", "--price-per-hour", "2.5",
            "--cost-per-hour", "15", "--at-least", "4 08:00-20:00 mon-wed,sat Europe/Berlin",
            "--at-least", "2 22:00-06:00", "--json",
        )
    )  # fmt: skip
    aims = new["scaling"]
    assert (aims["utilisation"], aims["target_wait_s"], aims["cost_per_h"]) == (0.6, 5.0, 15.0)
    office = {"replicas": 4, "start": "08:00", "end": "20:00", "zone": "Europe/Berlin"}
    night = {"replicas": 2, "start": "22:00", "end": "06:00", "zone": "UTC"}
    assert aims["floors"] == [{**office, "days": ["mon", "tue", "wed", "sat"]}, {**night, "days": []}]
    shown = said(small, "deployments", "show", "small")
    assert "15: 6 replicas" in shown
    assert "4 08:00-20:00 mon,tue,wed,sat Europe/Berlin" in shown
    for wrong, words in (
        ("four 08:00-20:00", "write a number of replicas"),
        ("4 8-20", "scaling.floors.start"),
        ("4 08:00-20:00 noday", "scaling.floors.days"),
        ("4 08:00-20:00 Mars", "scaling.floors.zone"),
        ("9 08:00-20:00", "max_replicas, which is 8"),
    ):
        refused(small, 2, words, *change, "--at-least", wrong)
    none = json.loads(said(small, *change, "--no-at-least", "--cost-per-hour", "0", "--json"))["scaling"]
    assert (none["floors"], none["cost_per_h"], none["utilisation"]) == ([], 0.0, 0.6)


def test_models_are_shown_with_their_versions_and_removed_piece_by_piece(small: Axon) -> None:
    said(small, "deployments", "create", "chat", "--model", "small", "--version", "small@v2")
    assert "v1, v2" in said(small, "models", "list", "--registered")
    whole = json.loads(said(small, "models", "show", "small", "--json"))
    assert [each["id"] for each in whole["versions"]] == ["small@v1", "small@v2"]
    assert [each["id"] for each in whole["deployments"]] == ["chat"]
    assert "small@v2  chat" in said(small, "models", "show", "small")
    refused(small, 1, "is deployed: chat", "models", "remove", "small@v2")
    said(small, "deployments", "remove", "chat")
    for name in ("small@v1", "small@v2"):
        assert said(small, "models", "remove", name) == f"Version {name} is removed.\n"
    assert said(small, "models", "remove", "small") == "Model small is removed.\n"
    refused(small, 1, "There is no model 'small'", "models", "show", "small")


def test_plain_models_lists_them(axon: Axon) -> None:
    plain, listed = axon("models"), axon("models", "list")
    assert (plain.returncode, plain.stdout) == (0, listed.stdout)
    assert "smollm2-135m-instruct" in plain.stdout


def test_an_alias_is_set_switched_and_removed(small: Axon) -> None:
    for name in ("one", "two"):
        said(small, "deployments", "create", name, "--model", "small", "--version", "v1")
    assert said(small, "aliases", "set", "best", "one") == "best stands for one.\n"
    assert json.loads(said(small, "aliases", "set", "best", "two", "--json"))["deployment"] == "two"
    assert "best" in said(small, "aliases", "list")
    refused(small, 1, "Aliases stand for the deployment 'two': best", "deployments", "remove", "two")
    refused(small, 1, "There is no deployment 'three'", "aliases", "set", "best", "three")
    assert said(small, "aliases", "remove", "best") == "Alias best is removed.\n"


def test_prices_are_added_and_listed_latest_first(small: Axon) -> None:
    said(small, "prices", "add", "small", "--prompt", "0.15", "--output", "0.6", "--since", "2026-01-01")
    told = said(small, "prices", "add", "small", "--version", "v1", "--output", "1", "--since", "2027-01-01")
    assert told == "small@v1 has a price from 2027-01-01T00:00:00Z on.\n"
    prices = json.loads(said(small, "prices", "list", "--json"))
    assert [(each["version"], each["output"]) for each in prices] == [("small@v1", 1.0), ("", 0.6)]
    assert json.loads(said(small, "prices", "list", "--model", "other", "--json")) == []
    assert "0.15" in said(small, "prices", "list")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["deployments", "change", "small"], "nothing to change"),
        (["deployments", "change", "small", "--idle", "soon"], "--idle soon: write a number and s"),
        (["deployments", "create", "a@b", "--model", "small", "--version", "v1"], "must have 1 to 64 letters"),
        (["prices", "add", "small", "--since", "soon"], "--since soon: write a day"),
        (["prices", "add", "small", "--prompt", "-1"], "'prompt' must be at least 0"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_meant_is_one_line_and_exit_code_2(small: Axon, arguments: list[str], words: str) -> None:
    refused(small, 2, words, *arguments)


def test_without_a_store_one_is_told(axon: Axon) -> None:
    for arguments in (["deployments", "list"], ["aliases", "list"], ["prices", "list"], ["models", "show", "small"]):
        refused(axon, 2, "There is no store at", *arguments)


def test_an_empty_registry_is_said_in_words(axon: Axon) -> None:
    assert axon("plans", "create", "pro").returncode == 0  # makes the store
    for what in ("deployments", "aliases", "prices"):
        ran = axon(what, "list")
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", f"The registry has no {what}.\n")
