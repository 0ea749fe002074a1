"""Rollouts in the console, on one embedded server: one aborts by itself, one is promoted and rolled back."""

import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.console import command_of, confirm, dialog, enter, parsed, row
from tests.browser.serving import Served, serving
from tests.browser.visiting import visit
from tests.fleet.versions import MODEL, sent, version_body
from tests.journeys.server import wait_until

STEP_S = "0.002"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with a registered model of three versions: the second fails half of its turns."""
    data_dir = tmp_path_factory.mktemp("rollouts") / "data"
    with (
        serving(data_dir, admission_requests_per_minute=0) as server,
        httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.admin_key}"}, timeout=60) as http,
    ):
        sent(http.post("/v1/admin/models", json={"id": MODEL}))
        for label, fails in (("v1", "0"), ("v2", "0.5"), ("v3", "0")):
            body = version_body(label, echo_step_s=STEP_S, echo_fails=fails)
            sent(http.post(f"/v1/admin/models/{MODEL}/versions", json=body))
        body = {"id": MODEL, "model": MODEL, "version": "v1", "num_lanes": 4, "min_replicas": 1}
        sent(http.post("/v1/admin/deployments", json=body))
        wait_until(lambda: _answers(server), "the model is served")
        yield server


def _answers(served: Served) -> bool:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}
    headers = {"Authorization": f"Bearer {served.key}"}
    reply = httpx.post(f"{served.url}/v1/chat/completions", json=body, headers=headers, timeout=60)
    return reply.status_code == 200


@contextmanager
def traffic(served: Served) -> Iterator[None]:
    """New sessions, four at a time, for the length of a block; some of them fail."""
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            _answers(served)

    with ThreadPoolExecutor(4) as threads:
        asking = [threads.submit(ask) for _ in range(4)]
        try:
            yield
        finally:
            over.set()
    for each in asking:
        each.result()


def test_a_rollout_aborts_by_itself_and_another_is_rolled_back(page: Page, served: Served) -> None:
    enter(page, served, f"models/{MODEL}")
    expect(page.get_by_text("No version has been rolled out here yet")).to_be_visible()
    _start(page, "v2", steps="50")
    with traffic(served):
        expect(page.get_by_text("aborted", exact=True)).to_be_visible(timeout=120_000)
    expect(page.get_by_text(re.compile(r"small@v2 errs: \d+ of \d+ turns"))).to_be_visible()
    expect(row(page, "Errors").get_by_role("cell").nth(1)).to_have_text(re.compile(r"[3-7]\d %"))
    assert _answers(served)

    _start(page, "v3", steps="100")
    expect(page.get_by_text("running", exact=True)).to_be_visible(timeout=60_000)
    page.get_by_role("button", name="Promote").click()
    told = dialog(page)
    told.get_by_label("Why").fill("it is good")
    assert parsed(command_of(told))["reason"] == "it is good"
    confirm(told, "Promote")
    expect(page.get_by_text("promoted", exact=True)).to_be_visible()
    page.get_by_role("button", name="Roll back").click()
    confirm(dialog(page), "Roll back")
    expect(page.get_by_text("rolled back", exact=True)).to_be_visible()
    expect(row(page, "small@v1")).to_contain_text("stable")

    visit(page, "audit")
    expect(page.get_by_role("row").filter(has_text="control").first).to_contain_text("rollout.state")
    visit(page, "models")
    expect(row(page, MODEL).filter(has_text="rolled back")).to_be_visible()


def _start(page: Page, label: str, *, steps: str) -> None:
    page.get_by_role("button", name="Start a rollout").click()
    told = dialog(page)
    told.get_by_label("New version").select_option(label)
    told.get_by_label("Percentages of new sessions").fill(steps)
    told.get_by_label("Each step lasts at least").select_option("0")
    told.get_by_label(re.compile("^Turns of each version")).fill("20")
    read = parsed(command_of(told))
    assert (read["version"], read["steps"], read["bake"], read["tolerance"]) == (label, steps, "0s", ["min_samples=20"])
    confirm(told, "Start it")
