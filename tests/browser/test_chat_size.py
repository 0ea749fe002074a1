"""Sizes on the chat page: a list of many conversations, an answer of many lines, a phone, a window of few lines."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.browser.chatting import answered, arrive, ask, ready, script_in
from tests.browser.conftest import NewPage
from tests.browser.serving import Served, serving
from tests.browser.tracing import traced
from tests.browser.watch import wait_on

PAGE = 50
"""Conversations that the page asks for at a time."""
LONGEST_MS = 300
"""Processor time of one task, a multiple of what any takes here: no page of a list or frame freezes the browser."""
PHONE = {"viewport": {"width": 390, "height": 780}, "has_touch": True}
ZOOMED = ViewportSize(width=320, height=256)
"""1280 by 1024 at 400 %."""

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


_OVERFLOW = """() => [...document.querySelectorAll("body *")]
  .filter(each => each.checkVisibility({ visibilityProperty: true }) && !each.closest(".visually-hidden, .skip-link"))
  .filter(each => !each.parentElement.closest("pre, .table-box, .item-title, #title") && each.id !== "title")
  .filter(each => each.getBoundingClientRect().right > innerWidth + 1)
  .map(each => each.outerHTML.slice(0, 100))"""
"""What stands beyond the right edge of the window."""
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


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with written answers."""
    folder = tmp_path_factory.mktemp("size")
    settings = {"engine_max_model_len": 1 << 17, "admission_requests_per_minute": 100_000}
    with serving(folder / "data", engine_echo_script=script_in(folder), **settings) as server:
        yield server


@pytest.fixture
def many(served: Served) -> int:
    """A server with a thousand conversations."""
    num = 1_000
    with served.server.client() as api:
        for number in range(num):
            api.post("/v1/conversations", json={"metadata": {"title": f"Talk {number}"}}).raise_for_status()
    return num


def test_a_thousand_conversations_are_listed_as_they_are_scrolled_to(
    page: Page, browser: Browser, served: Served, many: int
) -> None:
    arrive(page, served)
    talks = page.locator("#list .item-title", has_text="Talk ")  # others' conversations may be listed too
    expect(talks.first).to_have_text(f"Talk {many - 1}")
    assert talks.count() <= 150  # the first pages alone

    def all_listed() -> bool:
        page.evaluate("document.getElementById('list-scroll').scrollTo(0, 1e6)")
        return talks.count() == many

    with traced(browser, page) as trace:
        wait_on(page, all_listed, "the whole list")
    assert talks.all_text_contents() == [f"Talk {number}" for number in range(many)][::-1]
    assert trace.num_tasks >= 1
    assert len(trace.long_tasks) <= many // PAGE, trace.long_tasks  # at most one for each page of the list
    assert max(trace.long_tasks, default=0) <= LONGEST_MS, trace.long_tasks
    assert sum(trace.long_tasks) <= LONGEST_MS / 2 * many / PAGE, trace.long_tasks
    page.fill("#search", "talk 777")
    expect(talks).to_have_text(["Talk 777"])
    answered(ask(page, "What nobody searches for"))
    expect(page.locator("#title")).to_have_text("What nobody searches for")
    expect(page.locator("#list .item-title")).to_have_text(["Talk 777"])


@pytest.mark.long("browser soaks")
def test_an_answer_of_ten_thousand_lines_scrolls_in_frames(page: Page, browser: Browser, served: Served) -> None:
    """By Chromium's own trace: each turn of the wheel is painted, and few of them compute for long."""
    arrive(page, served)
    turn = ask(page, "Ten thousand lines")
    expect(page.locator("#send")).to_be_visible(timeout=240_000)
    assert answered(turn).split() == [f"l{number}" for number in range(10_000)]
    page.evaluate("document.getElementById('thread').scrollTo(0, 0)")
    page.mouse.move(640, 300)
    num_wheels = 60
    with traced(browser, page) as trace:
        for _ in range(num_wheels):
            page.mouse.wheel(0, 2_500)
            page.evaluate("new Promise(requestAnimationFrame)")
    assert page.evaluate("document.getElementById('thread').scrollTop") > 30_000
    assert trace.num_frames >= num_wheels / 2, trace.num_frames
    assert trace.num_tasks >= num_wheels
    assert len(trace.long_tasks) <= num_wheels / 4, trace.long_tasks
    assert max(trace.long_tasks, default=0) <= LONGEST_MS, trace.long_tasks


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
    expect(page.locator("#thread")).to_be_focused()


def test_a_chat_on_a_phone_and_in_a_window_of_few_lines(new_page: NewPage, served: Served) -> None:
    page = new_page(**PHONE)
    arrive(page, served)
    answered(ask(page, "Show me Markdown"))
    expect(page.locator(".answer table")).to_be_visible()
    assert page.evaluate(_OVERFLOW) == []
    menu = page.get_by_role("button", name="Show conversations")
    menu.click()
    expect(page.get_by_role("button", name="Close the list of conversations")).to_be_focused()
    assert page.evaluate(_OVERFLOW) == []
    for _ in range(12):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement === document.body || !!document.activeElement.closest('#side')")
    page.keyboard.press("Escape")
    expect(menu).to_be_focused()
    menu.click()
    page.get_by_label("Colours").select_option("dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_label("Colours").select_option("light")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
    page.get_by_label("Colours").select_option("dark")
    page.get_by_role("button", name="New chat").click()
    expect(page.locator("#message")).to_be_focused()
    page.reload()
    ready(page)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
    menu.click()
    page.locator("#list a", has_text="Show me Markdown").first.click()
    expect(page.locator(".turn")).to_have_count(1)
    expect(menu).to_be_focused()
    page.get_by_role("button", name="Settings", exact=True).click()
    assert page.evaluate(_OVERFLOW) == []
    page.keyboard.press("Escape")
    page.set_viewport_size(ZOOMED)
    assert page.evaluate("document.getElementById('thread').clientHeight") >= ZOOMED["height"] / 2
    assert page.evaluate(_OVERFLOW) == []
    page.locator("#send").scroll_into_view_if_needed()
    expect(page.locator("#send")).to_be_in_viewport()
    page.get_by_role("button", name="Rename").scroll_into_view_if_needed()
    expect(page.get_by_role("button", name="Rename")).to_be_in_viewport()


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
