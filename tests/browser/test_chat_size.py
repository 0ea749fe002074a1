"""Large things on the chat page: a list of many conversations, an answer of many lines."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chatting import arrive
from tests.browser.serving import Served
from tests.browser.watch import wait_on

_FILL = """async (num) => {
  const { PlainText } = await import("./ui/chat/plain.js");
  const plain = new PlainText();
  let whole = "";
  for (let line = 0; line < num; line += 1) {
    const text = `line ${line} of many, with some words behind it\\n`;
    whole += text;
    plain.add(text.slice(0, 9));
    plain.add(text.slice(9));
    if (line % 10 === 0) plain.flush();
  }
  plain.flush();
  document.getElementById("thread").replaceChildren(plain.element);
  return {
    isWhole: plain.element.textContent === whole,
    sizes: [...plain.element.children].map((piece) => piece.textContent.length),
    ends: [...plain.element.children].every((piece) => piece.textContent.endsWith("\\n")),
    skips: getComputedStyle(plain.element.firstChild).contentVisibility,
  };
}"""


@pytest.fixture
def many(served: Served) -> int:
    """A server with more conversations than are listed at once."""
    num = 130
    with served.server.client() as api:
        for number in range(num):
            api.post("/v1/conversations", json={"metadata": {"title": f"Talk {number}"}}).raise_for_status()
    return num


def test_many_conversations_are_listed_as_they_are_scrolled_to(page: Page, served: Served, many: int) -> None:
    arrive(page, served)
    expect(page.locator("#list li").first).to_contain_text(f"Talk {many - 1}")
    assert page.locator("#list li").count() < many

    def all_listed() -> bool:
        page.evaluate("document.getElementById('list-scroll').scrollTo(0, 1e6)")
        return page.locator("#list li").count() == many

    wait_on(page, all_listed, "the whole list")
    assert page.locator("#list .item-title").all_text_contents() == [f"Talk {number}" for number in range(many)][::-1]


def test_ten_thousand_lines_are_laid_out_piece_by_piece(page: Page, served: Served) -> None:
    arrive(page, served)
    found = page.evaluate(_FILL, 10_000)
    assert found["isWhole"]
    assert found["ends"]
    assert found["skips"] == "auto"
    assert len(found["sizes"]) > 50
    assert max(found["sizes"]) < 10_000
