"""Cookies and origins: whose page made a request, and whether it may act for whoever is signed in."""

import pytest

from axon.errors import Forbidden, Unauthenticated
from axon.gateway.http.cookies import (
    check_csrf,
    check_own_page,
    cookie_values,
    only_value,
    session_cookie,
)

TOKEN = "t" * 64


@pytest.mark.parametrize(
    ("cookies", "values"),
    [
        ([], []),
        ([b"theme=dark"], []),
        ([b"axon_session=a"], ["a"]),
        ([b"x=1; axon_session=a ; y=2"], ["a"]),
        ([b"axon_session=a; axon_session=b"], ["a", "b"]),
        ([b"axon_session=a", b"axon_session=b"], ["a", "b"]),
        ([b"axon_session"], [""]),
        ([b"xaxon_session=a; axon_session2=b; AXON_SESSION=c"], []),
        ([b"axon_session=\xff=;;=\x00"], ["\xff="]),
    ],
)
def test_every_cookie_of_the_name_is_found_and_no_other(cookies: list[bytes], values: list[str]) -> None:
    assert cookie_values([(b"cookie", each) for each in cookies]) == values


def test_two_cookies_of_the_name_are_nobody() -> None:
    assert only_value(["a", "a"]) == "a"
    with pytest.raises(Unauthenticated, match="two cookies"):
        only_value(["a", "b"])


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
        {"sec-fetch-site": "same-origin", "origin": "https://chat.example.com", "host": "10.0.0.7:8000"},
        {"origin": "http://gpu-box:8000", "host": "GPU-box:8000"},
    ],
)
def test_our_own_pages_and_programs_may_ask(headers: dict[str, str]) -> None:
    check_own_page([(name.encode(), value.encode()) for name, value in headers.items()])


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "origin": "http://gpu-box:8000", "host": "gpu-box:8000"},
        {"sec-fetch-site": ""},
        {"origin": "http://gpu-box:9000", "host": "gpu-box:8000"},
        {"origin": "https://evil.example", "host": "gpu-box:8000"},
        {"origin": "null", "host": "gpu-box:8000"},
        {"origin": "null", "host": ""},
        {"origin": "http://gpu-box:8000"},
    ],
)
def test_a_page_of_another_origin_may_not(headers: dict[str, str]) -> None:
    with pytest.raises(Forbidden) as refusal:
        check_own_page([(name.encode(), value.encode()) for name, value in headers.items()])
    assert refusal.value.code == "cross_site"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "get"])
@pytest.mark.parametrize("given", [None, b"", b"t", b"T" * 64, b"t" * 65, b"\xff" * 64])
def test_what_may_change_something_needs_the_token(method: str, given: bytes | None) -> None:
    headers = [] if given is None else [(b"x-axon-csrf", given)]
    with pytest.raises(Forbidden) as refusal:
        check_csrf(method, headers, TOKEN)
    assert refusal.value.code == "csrf"
    check_csrf(method, [(b"x-axon-csrf", TOKEN.encode())], TOKEN)


def test_what_only_reads_needs_none() -> None:
    check_csrf("GET", [], TOKEN)
    check_csrf("HEAD", [], TOKEN)


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites() -> None:
    plain = session_cookie("v", path="/axon", is_secure=False, max_age_s=60.5)
    assert plain == "axon_session=v; Path=/axon; Max-Age=60; HttpOnly; SameSite=Strict"
    assert session_cookie("", path="/", is_secure=True, max_age_s=0) == (
        "axon_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict; Secure"
    )
