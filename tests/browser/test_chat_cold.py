"""A model that runs nowhere: the chat says that it starts and how long that takes, and the ledger blames the start."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.chatting import answered, ask, ready
from tests.fleet import launched
from tests.fleet.conftest import fleets
from tests.fleet.fleet import Fleet
from tests.fleet.versions import MODEL, Registry, register_echo
from tests.journeys.server import wait_until

pytestmark = pytest.mark.services
COLD = {"min_replicas": 0, "idle_s": 600.0, "cold_patience_s": 170.0}


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    """A gateway, no worker, and a control that starts one when somebody asks."""
    with fleets() as make:
        made = make(gateway_silence_s=1.0, control_launcher="process", control_look_s=0.2, worker_announce_s=0.2)
        made.start(gateways=1, workers=0, controls=1, meanwhile=lambda fleet: register_echo(fleet, MODEL, **COLD))
        try:
            yield made
        finally:
            launched.watched(made.data_dir)


def test_a_cold_model_is_started_by_the_first_question(page: Page, fleet: Fleet) -> None:
    [gateway] = fleet.gateways
    page.goto(f"{gateway.url}/sign-in")
    page.get_by_label("API key").fill(fleet.key)
    page.get_by_role("button", name="Sign in", exact=True).click()
    ready(page)
    state = page.locator("#model-state")
    expect(state).to_have_text("cold: starts when asked")
    first = ask(page, "Good morning")
    began(page, fleet, first)
    assert "Good morning" in answered(first)
    expect(state).to_have_text("ready")  # nobody has loaded the page again

    with Registry(fleet) as registry:
        registry.change(idle_s=1.0)
    expect(state).to_have_text("cold: starts when asked", timeout=120_000)  # it has gone cold by itself
    wait_until(lambda: not launched.processes(fleet.data_dir), "its worker has ended")
    with Registry(fleet) as registry:
        registry.change(idle_s=600)
    second = ask(page, "Good evening")
    expect(second.locator(".turn-state")).to_contain_text("It will take about")  # the first start was measured
    began(page, fleet, second)
    assert "Good evening" in answered(second)
    second.get_by_role("button", name="Why was this slow?").click()
    told = page.get_by_role("dialog")
    expect(told).to_contain_text("was model start.")
    expect(told.get_by_role("row").filter(has_text="Model start")).to_be_visible()


def began(page: Page, fleet: Fleet, turn: Locator) -> None:
    """The worker that the question has started stands still while it loads, which the page shows."""
    wait_until(lambda: launched.watched(fleet.data_dir), "control launches a worker")
    [process] = launched.processes(fleet.data_dir).values()
    with launched.paused(process):
        expect(turn.locator(".turn-state")).to_contain_text("The model is loading.")
        expect(page.locator("#model-state")).to_have_text("loading")
        expect(page.locator("#model option:checked")).to_have_text(f"{MODEL} (loading)")
