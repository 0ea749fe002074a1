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
