"""A worker of a real fleet is drained from the console: its stream goes on at another, and its reader sees no gap."""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.console import confirm, dialog, row
from tests.browser.visiting import visit
from tests.fleet.conftest import fleets
from tests.fleet.fleet import Fleet
from tests.journeys.server import wait_until
from tests.journeys.sse import pieces, text_of

pytestmark = pytest.mark.services
BODY = {"model": "echo", "prompt": "To be continued elsewhere. " * 20, "max_tokens": 800, "ignore_eos": True}


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    """One gateway and two workers, on the services."""
    with fleets() as make:
        yield make(engine_echo_step_s=0.02, worker_linger_s=0.2).start(gateways=1, workers=2, controls=1)


def test_a_worker_is_drained_and_its_stream_goes_on(page: Page, fleet: Fleet) -> None:
    key = json.loads(fleet.axon("keys", "create", "--scope", "admin", "--json"))["key"]
    [gateway] = fleet.gateways
    page.goto(f"{gateway.url}/sign-in?to=console")
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(f"{gateway.url}/console")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    visit(page, "fleet")
    drains = page.get_by_role("button", name=re.compile("^Drain "))
    expect(drains).to_have_count(2)
    with (
        fleet.client(gateway.url) as http,
        http.stream("POST", "/v1/completions", json={**BODY, "stream": True}) as reply,
    ):
        stream = pieces(reply.iter_lines())
        got = [next(stream) for _ in range(10)]
        busy = page.get_by_role("row").filter(has_text=re.compile(r"(?<!\d)1 / \d+"))
        name = busy.get_by_role("rowheader").inner_text()
        busy.get_by_role("button", name=f"Drain {name}").click()
        told = dialog(page)
        expect(told).to_contain_text("No answer is lost")
        confirm(told, "Drain it")
        got += list(stream)
    assert [piece.seq for piece in got if piece.text] == sorted({piece.seq for piece in got if piece.text})
    assert got[-1].finish == "length"
    assert text_of(got)
    expect(row(page, name)).to_have_count(0)
    expect(drains).to_have_count(1)
    wait_until(lambda: sum(each.alive for each in fleet.workers) == 1, "the drained worker's process ends")
