"""LoRA adapters of a running server: added, asked by name, replaced, kept from other tenants, removed under traffic."""

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.engine.adapter_files import make_adapter
from tests.journeys.conftest import PATIENT
from tests.journeys.server import Server, running, wait_until
from tests.weights.models import make_model


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model, and two adapters of it."""
    root = tmp_path_factory.mktemp("adapters")
    make_model(root / "base")
    for seed, name in enumerate(("sql", "law")):
        make_adapter(root / name, root / "base", seed=seed)
    return root


@pytest.fixture(scope="module")
def server(root: Path, place: Callable[[], dict[str, Any]]) -> Iterator[Server]:
    """One adapter fits into its engine's memory, and the files of three into its cache: they take turns there."""
    few: dict[str, Any] = {"engine_adapter_slots": 1, "models_dir": root / "models"}
    few["weights_limit_gb"] = 3.5e-9 * sum(path.stat().st_size for path in (root / "sql").iterdir())
    models = f"tiny={root / 'base'};threads=1"
    with running(root / "data", models=models, **few, **PATIENT, **place()) as server:
        for name in ("sql", "law"):
            add(server, name, root / name)
        yield server


def axon(server: Server, *arguments: str) -> Any:
    done = server.axon(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def add(server: Server, name: str, folder: Path, *flags: str, key: str = "") -> str:
    """Adds an adapter and waits until the gateway has heard of it; returns its digest."""
    digest: str = axon(server, "models", "adapters", "add", "tiny", name, str(folder), *flags)["files"][0]["digest"]
    wait_until(lambda: shown(server, name, key).json().get("adapter") == digest, "the gateway knows the adapter")
    return digest


def shown(server: Server, name: str, key: str = "") -> httpx.Response:
    headers = {"Authorization": f"Bearer {key or server.key}"}
    return httpx.get(f"{server.url}/v1/models/tiny:{name}", headers=headers, timeout=60)


def ask(http: httpx.Client, model: str, prompt: str = "he said", **more: Any) -> str:
    body = {"model": model, "prompt": prompt, "max_tokens": 12, "temperature": 0, "ignore_eos": True, **more}
    answered = http.post("/v1/completions", json=body)
    assert answered.status_code == 200, answered.text
    assert answered.json()["model"] == model
    text: str = answered.json()["choices"][0]["text"]
    return text


def test_adapters_answer_by_their_names_and_each_as_if_it_were_alone(server: Server) -> None:
    with server.client() as http:
        ids = [each["id"] for each in http.get("/v1/models").json()["data"]]
        assert {"tiny", "tiny:law", "tiny:sql"} <= set(ids)
        assert shown(server, "sql").json()["parent"] == "tiny"
        alone = {model: ask(http, model) for model in ("tiny", "tiny:sql", "tiny:law")}
        assert len(set(alone.values())) == 3
        models = list(alone) * 8
        with ThreadPoolExecutor(6) as pool:
            assert list(pool.map(lambda model: ask(http, model), models)) == [alone[each] for each in models]
        refused = http.post("/v1/completions", json={"model": "tiny:none", "prompt": "x"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "model_not_found")


def test_an_adapter_keeps_to_a_grammar(server: Server) -> None:
    with server.client() as http:
        said = ask(http, "tiny:sql", guided_choice=["yes", "no"], ignore_eos=False)
        assert said.removesuffix("he") in ("yes", "no")  # the tiny model's end token has a text


def test_another_tenants_adapter_is_unknown(server: Server, root: Path) -> None:
    keys = {tenant: axon(server, "keys", "create", "--tenant", tenant)["key"] for tenant in ("acme", "other")}
    add(server, "own", root / "law", "--tenant", "acme", key=keys["acme"])

    def answered(tenant: str, model: str) -> tuple[int, str | None]:
        headers = {"Authorization": f"Bearer {keys[tenant]}"}
        body = {"model": model, "prompt": "he said", "max_tokens": 2}
        reply = httpx.post(f"{server.url}/v1/completions", headers=headers, json=body, timeout=60)
        return reply.status_code, reply.json().get("error", {}).get("code")

    assert answered("acme", "tiny:own") == (200, None)
    assert answered("other", "tiny:own") == answered("other", "tiny:nothing") == (404, "model_not_found")
    assert shown(server, "own", keys["other"]).status_code == 404
    listed = httpx.get(f"{server.url}/v1/models", headers={"Authorization": f"Bearer {keys['other']}"}, timeout=60)
    assert "tiny:own" not in [each["id"] for each in listed.json()["data"]]
    taken = server.axon("models", "adapters", "add", "tiny", "own", str(root / "law"))
    assert taken.returncode != 0
    assert "is for the tenant 'acme'" in taken.stderr


def test_a_session_keeps_the_files_that_it_began_with(server: Server, root: Path) -> None:
    add(server, "changing", root / "sql")
    session = {"x-axon-session": "mine"}
    with server.client() as plain, server.client() as held:
        held.headers.update(session)
        before = ask(plain, "tiny:sql")
        assert ask(held, "tiny:changing") == before
        add(server, "changing", root / "law")
        assert ask(held, "tiny:changing") == before
        assert ask(plain, "tiny:changing") != before


def test_a_killed_engine_goes_on_with_the_same_adapter(server: Server, root: Path) -> None:
    add(server, "lasting", root / "sql")
    with server.client() as http, ThreadPoolExecutor(2) as pool:
        long: dict[str, Any] = {"max_tokens": 200, "prompt": "and then"}
        expected = ask(http, "tiny:sql", **long)
        asked = [pool.submit(ask, http, "tiny:lasting", **long) for _ in range(2)]
        wait_until(lambda: server.metric("axon_requests_running") > 0 or all(each.done() for each in asked), "it runs")
        for pid in server.engine_pids():
            os.kill(pid, signal.SIGKILL)
        assert [each.result() for each in asked] == [expected] * 2


def test_adapters_come_and_go_under_traffic(server: Server, root: Path) -> None:
    with server.client() as http, ThreadPoolExecutor(4) as pool:
        add(server, "staying", root / "law")
        expected = ask(http, "tiny:staying")
        asked = [pool.submit(ask, http, "tiny:staying") for _ in range(30)]
        for round_ in range(3):
            add(server, f"passing-{round_}", root / "sql")
            assert ask(http, f"tiny:passing-{round_}") == ask(http, "tiny:sql")
            removed = server.axon("models", "adapters", "remove", "tiny", f"passing-{round_}")
            assert removed.returncode == 0, removed.stderr
            wait_until(lambda name=f"passing-{round_}": shown(server, name).status_code == 404, "it is gone")  # type: ignore[misc]
        assert [each.result() for each in asked] == [expected] * 30


def test_what_cannot_be_served_is_refused_when_it_is_added_or_asked(server: Server, root: Path, tmp_path: Path) -> None:
    dora = make_adapter(tmp_path / "dora", root / "base", use_dora=True)
    refused = server.axon("models", "adapters", "add", "tiny", "dora", str(dora))
    assert refused.returncode != 0
    assert "DoRA" in refused.stderr
    small = make_adapter(tmp_path / "small", root / "base", rank=5, r=4)
    add(server, "small", small)
    with server.client() as http:
        answer = http.post("/v1/completions", json={"model": "tiny:small", "prompt": "x", "max_tokens": 2})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "adapter_unusable")
        assert "r = 4" in answer.json()["error"]["message"]


def test_files_that_no_answer_needs_give_way_to_others(server: Server, root: Path) -> None:
    """Six adapters, and room on the disk for three."""
    with server.client() as http:
        expected = {}
        for number in range(6):
            make_adapter(root / f"many-{number}", root / "base", seed=10 + number)
            add(server, f"many-{number}", root / f"many-{number}")
            expected[f"tiny:many-{number}"] = ask(http, f"tiny:many-{number}")
        with ThreadPoolExecutor(6) as pool:
            again = list(expected) * 4
            assert list(pool.map(lambda model: ask(http, model), again)) == [expected[each] for each in again]
    kept = [each for each in (root / "models/by-digest").iterdir() if len(each.name) == 64]
    assert len(kept) <= 3


def test_files_that_are_lost_or_damaged_are_fetched_again_and_are_never_the_clients_fault(
    server: Server, root: Path
) -> None:
    """The engine has room for one adapter, so it reads these files anew each time."""
    digest = add(server, "fragile", root / "sql")
    kept = root / "models/by-digest" / digest
    with server.client() as http:
        expected = ask(http, "tiny:sql")
        for harm in (shutil.rmtree, emptied, flipped):
            assert ask(http, "tiny:fragile") == expected
            ask(http, "tiny:law")
            harm(kept)
            assert ask(http, "tiny:fragile") == expected, harm


def emptied(folder: Path) -> None:
    (folder / "adapter_model.safetensors").write_bytes(b"")


def flipped(folder: Path) -> None:
    """Changes one number, which the format does not show."""
    path = folder / "adapter_model.safetensors"
    content = bytearray(path.read_bytes())
    content[-2] ^= 0x40
    path.write_bytes(content)
