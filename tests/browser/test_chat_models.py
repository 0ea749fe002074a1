"""Which model answers in the chat: it can be switched within one, and its state is told as far as it is known."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.chatting import answered, arrive, ask
from tests.browser.conftest import NewPage
from tests.browser.serving import Served, serving
from tests.browser.watch import wait_on


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with two models."""
    folder = tmp_path_factory.mktemp("models")
    with serving(folder / "data", models="one=echo;kind=echo,two=echo;kind=echo") as server:
        yield server


def test_the_state_of_a_model_is_unknown_while_the_server_is_away(page: Page, served: Served) -> None:
    arrive(page, served)
    expect(page.locator("#model-state")).to_have_text("ready")
    page.route("**/v1/models", lambda route: route.abort())
    page.focus("#model")
    expect(page.locator("#model-state")).to_have_text("unknown")
    expect(page.locator("#model-state")).to_have_class("state none")
    page.unroute("**/v1/models")
    expect(page.locator("#model-state")).to_have_text("ready")


def test_models_can_be_switched_within_a_chat(new_page: NewPage, served: Served) -> None:
    page = new_page()
    arrive(page, served)
    for name, question in (("one", "First of one"), ("two", "Then of two"), ("one", "And of one again")):
        page.select_option("#model", name)
        turn = ask(page, question)
        assert question in answered(turn)
        expect(turn.locator(".foot .hint").last).to_contain_text(name)
    page.evaluate("localStorage.setItem('axon.chat.model', 'two')")  # as another tab would
    page.reload()
    expect(page.locator(".turn")).to_have_count(3)
    expect(page.locator("#model")).to_have_value("one")  # the last turn's
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/v1/models", hold)
    page.reload()
    expect(page.locator(".turn")).to_have_count(3)
    wait_on(page, lambda: bool(held), "the models are asked for")
    held.pop(0).continue_()  # later than the conversation
    expect(page.locator("#model")).to_have_value("one")
    page.unroute("**/v1/models")

    with served.server.client() as api:
        left = [each for each in api.get("/v1/models").json()["data"] if each["id"] == "two"]
    page.route("**/v1/models", lambda route: route.fulfill(json={"data": left}))
    page.get_by_role("button", name="Settings", exact=True).click()
    version = page.get_by_label("Version")
    version.fill("v9")
    page.focus("#model")
    expect(page.locator("#model-state")).to_have_text("not served any more")
    page.fill("#message", "To whom?")
    page.keyboard.press("Enter")
    expect(page.get_by_text("one is not served any more. Choose another model.")).to_be_visible()
    expect(page.locator(".turn")).to_have_count(3)  # no other model has answered in its place
    page.select_option("#model", "two")
    expect(version).to_have_value("")  # another model's
    version.fill("v9")
    page.get_by_role("button", name="Clear all").click()
    expect(version).to_have_value("")
    version.fill("v9")
    page.get_by_role("button", name="New chat").click()
    expect(version).to_have_value("")
