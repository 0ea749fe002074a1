"""The harness itself: pages load from a real server, and what no page may do is noticed."""

import httpx
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPage
from tests.browser.serving import Served
from tests.browser.watch import Watch, wait_on


def test_the_docs_of_a_server_are_shown(new_page: NewPage, served: Served) -> None:
    page = new_page(http_credentials={"username": "any", "password": served.key})
    page.goto(f"{served.url}/docs")
    expect(page.get_by_text("/v1/chat/completions", exact=True).first).to_be_visible()


def test_the_keys_open_what_they_should(served: Served) -> None:
    for key, status in ((served.key, 403), (served.admin_key, 200)):
        reply = httpx.get(f"{served.url}/v1/admin/tenants", headers={"Authorization": f"Bearer {key}"}, timeout=60)
        assert reply.status_code == status


def test_a_killed_server_comes_back_on_its_port(served: Served) -> None:
    before = served.url
    served.kill()
    served.start_again()
    assert served.url == before
    headers = {"Authorization": f"Bearer {served.key}"}
    assert httpx.get(f"{before}/v1/models", headers=headers, timeout=60).status_code == 200


def test_what_no_page_may_do_is_noticed(page: Page, served: Served, watch: Watch) -> None:
    page.goto(f"{served.url}/livez")
    page.evaluate("setTimeout(() => { throw new Error('thrown on purpose') })")
    page.evaluate("console.error('written on purpose')")
    page.evaluate("alert('opened on purpose')")
    page.evaluate("fetch('http://elsewhere.test/x').catch(() => 0)")
    page.evaluate("""() => {
      const policy = document.createElement('meta');
      policy.httpEquiv = 'Content-Security-Policy';
      policy.content = "script-src 'none'";
      document.head.append(policy);
      const script = document.createElement('script');
      script.textContent = '1';
      document.head.append(script);
    }""")
    for expected in (
        "a script threw: thrown on purpose",
        "console: written on purpose",
        "a dialog opened: alert 'opened on purpose'",
        "request to another host: GET http://elsewhere.test/x",
        "policy: script-src",
    ):
        wait_on(page, lambda expected=expected: expected in "\n".join(watch.problems), expected)  # type: ignore[misc]
    watch.allow("")


def test_a_request_that_failed_is_no_error_of_the_page(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/livez")
    assert page.evaluate("fetch('/v1/models').then(reply => reply.status)") == 401
