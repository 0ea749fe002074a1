"""What a person does first on the pages: signs in with a key. Knows the form, and nothing behind it."""

from playwright.sync_api import Page, expect

from tests.browser.serving import Served


def enter(page: Page, served: Served, to: str = "", key: str | None = None) -> None:
    """Signs in by the form and waits for the page named by ``to``: the chat, or ``console`` with the admin key."""
    chosen = key or (served.admin_key if to == "console" else served.key)
    page.goto(f"{served.url}/sign-in?to={to}")
    page.get_by_label("API key").fill(chosen)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(f"{served.url}/{to}")
    if not to:
        expect(page.locator("#model option")).not_to_have_count(0)  # before that, nothing can be asked


ROOMS = (
    *("overview", "fleet", "streams", "requests", "logs", "alerts"),
    *("models", "tenants", "plans", "keys", "usage", "settings", "audit"),
)
"""The console's views, by their names in the address."""
_GO = """place => new Promise(gone => {
  if (location.hash === place) return gone();
  addEventListener("hashchange", () => setTimeout(gone), { once: true });
  location.hash = place;
})"""
_HIDE = """hidden => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def visit(page: Page, room: str) -> None:
    """Goes to a view of the console and waits until it is there."""
    page.evaluate(_GO, f"#/{room}")
    expect(page.locator("#view")).not_to_have_attribute("aria-busy", "true")


def hide(page: Page, *, hidden: bool) -> None:
    """Makes the page believe that its tab is in the background, or seen again."""
    page.evaluate(_HIDE, hidden)
