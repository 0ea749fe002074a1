"""Makes docs/pictures of the pages: the chat, the console, the reference of the API and the form to sign in, each view,
detail and dialogue of note light and dark, wide and narrow.

    python scripts/pictures.py            # all of them
    python scripts/pictures.py chat       # those whose name begins so

It starts an embedded server whose models need no weights and answer by a script, has three tenants ask them for a
while, and takes pictures with Chromium (`make install-services`). The pictures are for people to look at: nothing
checks that they are the newest.
"""

import itertools
import json
import sys
import tempfile
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from playwright.sync_api import Browser, Page, StorageState, expect, sync_playwright  # noqa: E402
from tests.browser.serving import Served, serving  # noqa: E402
from tests.browser.visiting import ROOMS, enter, visit  # noqa: E402
from tests.services.require import find  # noqa: E402

FOLDER = ROOT / "docs" / "pictures"
MODELS = "support=echo;kind=echo;echo_step_s=0.01;max_sequences=8,draft=echo;kind=echo;echo_step_s=0.02;max_sequences=4"
SIZES = {"wide": {"width": 1280, "height": 800}, "narrow": {"width": 390, "height": 780}}
QUALITY = 85
COLOURS = ("light", "dark")
QUESTION = "How do I wait for three requests at once in Python, and how long does that take?"
ANSWER = """Start them together and wait for all of them with a **task group**:

```python
import asyncio

async def main() -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(fetch(url)) for url in URLS]
    print([task.result() for task in tasks])
```

It takes as long as the slowest one, $t = \\max(t_1, t_2, t_3)$, and not their sum:

| way | three requests of 200 ms |
|---|---|
| one after the other | 600 ms |
| at once | about 200 ms |

If one fails, the group cancels the others and raises its error."""
TITLES = (
    "A haiku about queues",
    "Why is my parcel late?",
    "Translate the release notes",
    "Fibonacci in Rust",
    "Three ideas for a talk on caches",
    "What does 429 mean?",
)
TENANTS = (("acme", "Acme Inc.", "support", 3), ("globex", "Globex", "support", 1), ("initech", "Initech", "draft", 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A state of a page that is worth a picture."""

    name: str
    prepare: Callable[[Page, Served], None]
    signed_in: str | None = None
    """The page that one is signed in for: the chat is an empty name."""


def main(beginning: str = "") -> None:
    """Takes the pictures whose name begins so."""
    expect.set_options(timeout=60_000)
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, _served(Path(folder)) as served, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=find("chromium"), args=["--no-sandbox"])
        people = {page: _signed_in(chromium, served, page) for page in ("", "console")}
        for scene in _scenes():
            for colours, size in itertools.product(COLOURS, SIZES):
                name = f"{scene.name}-{colours}-{size}"
                if name.startswith(beginning):
                    _take(chromium, people, served, scene, colours, size, FOLDER / f"{name}.webp")
        chromium.close()


def _signed_in(browser: Browser, served: Served, to: str) -> StorageState:
    """The cookies of somebody who has signed in for a page."""
    context = browser.new_context()
    enter(context.new_page(), served, to)
    state = context.storage_state()
    context.close()
    return state


def _scenes() -> Iterator[Scene]:
    yield Scene(name="sign-in", prepare=_sign_in)
    yield Scene(name="chat", prepare=_chat, signed_in="")
    yield Scene(name="chat-empty", prepare=_empty, signed_in="")
    yield Scene(name="chat-ledger", prepare=_ledger, signed_in="")
    yield Scene(name="chat-settings", prepare=_chat_settings, signed_in="")
    yield Scene(name="docs", prepare=_docs, signed_in="")
    for room in ROOMS:
        yield Scene(name=f"console-{room}", prepare=_room(room), signed_in="console")
    yield Scene(name="console-tenant", prepare=_room("tenants/acme"), signed_in="console")
    yield Scene(name="console-deployment", prepare=_room("models/support"), signed_in="console")
    yield Scene(name="console-request", prepare=_request, signed_in="console")
    yield Scene(name="console-dialogue", prepare=_dialogue, signed_in="console")
    yield Scene(name="console-error", prepare=_error, signed_in="console")


def _take(
    browser: Browser,
    people: dict[str, StorageState],
    served: Served,
    scene: Scene,
    colours: str,
    size: str,
    path: Path,
) -> None:
    state = None if scene.signed_in is None else people[scene.signed_in]
    looks: dict[str, Any] = {"viewport": SIZES[size], "color_scheme": colours, "reduced_motion": "reduce"}
    context = browser.new_context(storage_state=state, **looks)
    page = context.new_page()
    scene.prepare(page, served)
    shown = {"format": "webp", "quality": QUALITY}  # a quarter of the size of a PNG
    path.write_bytes(b64decode(context.new_cdp_session(page).send("Page.captureScreenshot", shown)["data"]))
    context.close()
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1024} kB")


def _sign_in(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/sign-in")


def _empty(page: Page, served: Served) -> None:
    page.goto(served.url)
    expect(page.locator("#model option")).not_to_have_count(0)
    expect(page.locator("#list a")).to_have_count(len(TITLES) + 1)


def _chat(page: Page, served: Served) -> None:
    _empty(page, served)
    page.evaluate("document.getElementById('side-open').offsetParent && document.getElementById('side-open').click()")
    page.locator("#list a", has_text=QUESTION[:20]).click()
    expect(page.locator(".answer table")).to_be_visible()
    page.evaluate("document.getElementById('thread').scrollTop = 0")
    page.mouse.move(0, 0)


def _ledger(page: Page, served: Served) -> None:
    _chat(page, served)
    page.get_by_role("button", name="Why was this slow?").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def _chat_settings(page: Page, served: Served) -> None:
    _empty(page, served)
    page.keyboard.press("Control+Shift+s")
    expect(page.locator("#settings")).to_be_visible()


def _docs(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/docs")
    page.locator("details", has_text="Upload a file").first.locator("summary").click()


def _request(page: Page, served: Served) -> None:
    """The slowest of the requests."""
    _room("requests")(page, served)
    page.get_by_role("rowheader").get_by_role("link").first.click()
    expect(page.locator(".why")).to_be_visible()


def _dialogue(page: Page, served: Served) -> None:
    _room("keys")(page, served)
    page.get_by_role("button", name="Make a key").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def _error(page: Page, served: Served) -> None:
    """A server that was there a moment ago."""
    page.goto(f"{served.url}/console")
    expect(page.locator("#rooms a")).not_to_have_count(0)
    page.route("**/v1/admin/audit*", lambda route: route.abort())
    visit(page, "audit")
    expect(page.get_by_role("alert")).to_be_visible()


def _room(room: str) -> Callable[[Page, Served], None]:
    def prepare(page: Page, served: Served) -> None:
        page.goto(f"{served.url}/console")
        visit(page, room)
        page.wait_for_timeout(6_000 if room in ("overview", "fleet") else 1_000)  # rates need two looks

    return prepare


@contextmanager
def _served(folder: Path) -> Iterator[Served]:
    """A server with conversations, tenants, and streams that run until the end."""
    script = folder / "script.json"
    script.write_text(json.dumps([{"if": "three requests at once", "say": ANSWER}]))
    settings = {"models": MODELS, "models_dir": folder / "models", "engine_echo_script": script, "zone": "zone-a"}
    with serving(folder / "data", **settings) as served:
        _converse(served)
        over = threading.Event()
        asking = [threading.Thread(target=_ask_on, args=(served, key, model, over)) for key, model in _tenants(served)]
        for thread in asking:
            thread.start()
        try:
            yield served
        finally:
            over.set()
            for thread in asking:
                thread.join()


def _converse(served: Served) -> None:
    """Conversations of the person who looks at the chat."""
    for title in (*TITLES, QUESTION):
        made = _post(served, served.key, "/v1/conversations", {"metadata": {"title": title}})
        ask = {"model": "support", "conversation": made["id"], "input": title, "max_output_tokens": 2000}
        _post(served, served.key, "/v1/responses", ask)


def _tenants(served: Served) -> Iterator[tuple[str, str]]:
    """Keys of tenants with the model that each asks, once for each of its streams."""
    _post(served, served.admin_key, "/v1/admin/plans", {"id": "pro", "limits": {"requests_per_minute": 6000}})
    for tenant, name, model, num in TENANTS:
        _post(served, served.admin_key, "/v1/admin/tenants", {"id": tenant, "name": name, "plan": "pro"})
        made = _post(served, served.admin_key, "/v1/admin/keys", {"tenant": tenant, "name": "app"})
        yield from [(str(made["key"]), model)] * num


def _ask_on(served: Served, key: str, model: str, over: threading.Event) -> None:
    """One chat after the other."""
    text = "Where is my parcel, and when will it be here? " * 12
    for number in itertools.count():
        if over.is_set():
            return
        body = {
            "model": model,
            "messages": [{"role": "user", "content": f"Question {number}. {text}"}],
            "max_tokens": 300,
        }
        _post(served, key, "/v1/chat/completions", body)
        over.wait(0.3)


def _post(served: Served, key: str, path: str, body: dict[str, object]) -> dict[str, object]:
    reply = httpx.post(f"{served.url}{path}", json=body, headers={"Authorization": f"Bearer {key}"}, timeout=120)
    reply.raise_for_status()
    return dict(reply.json())


if __name__ == "__main__":
    main(*sys.argv[1:2])
