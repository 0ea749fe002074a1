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


_TREE = """async () => {
  const { treeOf, pathOf, goingOn } = await import("./ui/chat/tree.js");
  const none = { metadata: {}, conversation: null, previous_response_id: null };
  const of = (id, status, more) => ({ id, status, ...none, ...more });
  const own = { conversation: { id: "conv" } };
  const turns = [
    of("a", "completed", own),
    of("b", "cancelled", own),
    of("c", "failed", own),
    of("d", "completed", own),
    of("e", "completed", { previous_response_id: "a", metadata: { edits: "b" } }),
    of("f", "cancelled", { previous_response_id: "e" }),
    of("g", "completed", { metadata: { edits: "a" } }),
  ];
  const tree = treeOf(turns);
  const onward = {};
  for (const id of ["d", "c", "f", ""]) onward[id] = goingOn(tree, turns, "conv", id);
  return {
    children: Object.fromEntries(tree.children),
    path: pathOf(tree, new Map([["", "a"], ["a", "b"]])),
    newest: pathOf(tree, new Map()),
    onward,
  };
}"""


@pytest.fixture
def many(served: Served) -> int:
    """A server with more conversations than are listed at once."""
    num = 60
    with served.server.client() as api:
        for number in range(num):
            api.post("/v1/conversations", json={"metadata": {"title": f"Talk {number}"}}).raise_for_status()
    return num


def test_many_conversations_are_listed_as_they_are_scrolled_to(page: Page, served: Served, many: int) -> None:
    arrive(page, served)
    talks = page.locator("#list .item-title", has_text="Talk ")  # others' conversations may be listed too
    expect(talks.first).to_have_text(f"Talk {many - 1}")
    assert talks.count() < many

    def all_listed() -> bool:
        page.evaluate("document.getElementById('list-scroll').scrollTo(0, 1e6)")
        return talks.count() == many

    wait_on(page, all_listed, "the whole list")
    assert talks.all_text_contents() == [f"Talk {number}" for number in range(many)][::-1]


def test_a_long_conversation_shows_its_end_and_more_when_asked(page: Page, served: Served) -> None:
    with served.server.client() as api:
        talk = api.post("/v1/conversations", json={"metadata": {"title": "Long"}}).json()["id"]
        last = None
        for number in range(65):
            body = {"model": "echo", "input": f"number {number}", "max_output_tokens": 1, "metadata": {}}
            place = {"previous_response_id": last} if last else {"conversation": talk}
            last = api.post("/v1/responses", json={**body, **place}).raise_for_status().json()["id"]
    arrive(page, served)
    page.goto(f"{served.url}/?c={talk}")
    expect(page.locator(".turn")).to_have_count(60)
    expect(page.locator(".turn").last).to_contain_text("number 64")
    page.get_by_role("button", name="Show 5 earlier of 5").click()
    expect(page.locator(".turn")).to_have_count(65)
    expect(page.locator(".turn").first).to_contain_text("number 0")


def test_a_tree_of_turns_is_read_from_what_the_server_lists(page: Page, served: Served) -> None:
    """What was stopped stays in its place, an edit stands beside its original, and each goes on from the right turn."""
    arrive(page, served)
    found = page.evaluate(_TREE)
    assert found["children"] == {
        "": ["a", "g"],
        "a": ["b", "e"],
        "b": ["c"],
        "c": ["d"],
        "e": ["f"],
        "f": [],
        "d": [],
        "g": [],
    }
    assert found["path"] == ["a", "b", "c", "d"]
    assert found["newest"] == ["g"]
    assert found["onward"] == {
        "d": {"fields": {"conversation": "conv"}, "headers": {}},
        "c": {"fields": {"previous_response_id": "a"}, "headers": {}},
        "f": {"fields": {"previous_response_id": "e"}, "headers": {}},
        "": {"fields": {}, "headers": {"x-axon-branch-of": "conv"}},
    }


def test_ten_thousand_lines_are_laid_out_piece_by_piece(page: Page, served: Served) -> None:
    arrive(page, served)
    found = page.evaluate(_FILL, 10_000)
    assert found["isWhole"]
    assert found["ends"]
    assert found["skips"] == "auto"
    assert len(found["sizes"]) > 50
    assert max(found["sizes"]) < 10_000
