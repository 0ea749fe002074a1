"""The policy of pages: nothing from elsewhere, nothing inline, and no frame around it."""

from axon.gateway.pages.policy import asset_headers, content_policy, page_headers


def test_a_page_may_load_and_run_what_the_server_itself_has_and_nothing_else() -> None:
    directives = dict(each.split(" ", 1) for each in content_policy().split("; "))
    assert directives["default-src"] == "'none'"
    assert directives["script-src"] == directives["style-src"] == directives["connect-src"] == "'self'"
    assert directives["frame-ancestors"] == directives["base-uri"] == "'none'"
    assert directives["form-action"] == "'self'"
    assert "unsafe" not in content_policy()
    assert "*" not in content_policy()


def test_one_directive_can_be_another_and_the_rest_stays() -> None:
    changed = content_policy({"img-src": "'self'"})
    assert "img-src 'self';" in changed
    assert "script-src 'self';" in changed


def test_a_page_cannot_be_framed_sniffed_or_named_to_others() -> None:
    headers = page_headers()
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert "microphone=()" in headers["permissions-policy"]
    assert asset_headers().items() <= headers.items()
