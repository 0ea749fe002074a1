"""axe-core, which finds what keeps people with disabilities from using a page. From npm, for tests alone."""

from functools import partial
from typing import Any

from playwright.sync_api import Page

from tests.conformance import binaries

_PACKAGE = binaries.Package(
    tarball="axe-core/-/axe-core-4.14.0.tgz",
    sha512="9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ==",
    program="package/axe.min.js",
)
_RUN = """within => axe.run(within || document, {
  runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"], resultTypes: ["violations"],
})"""


def script() -> str:
    """axe's source; skips the test where it cannot be had, or fails it with REQUIRE_SERVERS=1."""
    return binaries.or_skip("axe-core", partial(binaries.unpacked, "axe-core", _PACKAGE)).read_text("utf-8")


def violations(page: Page, within: str = "") -> list[str]:
    """What the page, or a part of it, does wrong as it is now: the rule, what it asks for, and each element."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(script())
    found: dict[str, Any] = page.evaluate(_RUN, within)
    return [
        f"{rule['id']} ({rule['impact']}): {rule['help']}: {node['html'][:200]} {_why(node)}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


def _why(node: dict[str, Any]) -> str:
    return "; ".join(str(check["message"]) for check in (*node["any"], *node["all"], *node["none"]))
