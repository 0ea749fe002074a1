"""The default model in the chat: a server that is killed in the middle changes no word of the answer."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.chatting import LOST, answered, arrive, ask, conversation_of, streamed
from tests.browser.serving import Served, serving
from tests.browser.watch import wait_on

pytestmark = pytest.mark.model
QUESTION = "Write a long story of ten paragraphs about a lighthouse keeper and her dog."
LONGEST = "600"
"""Tokens: some seconds, so that the kill falls into their middle on a busy machine too."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("real") / "data", engine_kind="axon") as server:
        yield server


def test_a_killed_server_changes_no_word_of_the_default_models_answer(page: Page, served: Served) -> None:
    arrive(page, served)
    undisturbed = answered(asked_greedily(page))
    raw = said(page, served)
    turn = asked_greedily(page)
    wait_on(page, lambda: len(streamed(turn)) > 80, "a part of the answer")
    served.kill()
    expect(page.locator("#connection")).to_have_text(LOST)
    before = streamed(turn)
    assert raw.startswith(before)
    assert before != raw, "it was killed in the middle"
    served.start_again()
    expect(page.locator("#connection")).to_have_text("Connected again. Nothing was lost.", timeout=120_000)
    assert answered(turn).split() == undisturbed.split()  # rendered or not yet
    assert said(page, served) == raw


def asked_greedily(page: Page) -> Locator:
    """Asks the question in a new chat, at temperature 0."""
    page.get_by_role("button", name="New chat").click()
    page.get_by_role("button", name="Settings", exact=True).click()
    page.get_by_label("Temperature").fill("0")
    page.get_by_label("Longest answer").fill(LONGEST)
    page.get_by_role("button", name="Close the settings").click()
    return ask(page, QUESTION)


def said(page: Page, served: Served) -> str:
    """The answer as the server has it."""
    with served.server.client() as api:
        [found] = api.get(f"/v1/conversations/{conversation_of(page)}/responses").json()["data"]
    return str(found["output"][0]["content"][0]["text"])
