"""Whether hostile text has done harm in a page: run a script, left markup of its own, or got hold of a key."""

from typing import Any

from playwright.sync_api import Page

_TRACES = """() => {
  const all = [...document.querySelectorAll("*")];
  const events = all.filter(each => each.getAttributeNames().some(name => name.startsWith("on")));
  const addresses = all.filter(each => ["href", "src", "action", "formaction", "data", "xlink:href"].some(name =>
    /^[\\s\\x00-\\x20]*(javascript|vbscript|data:text)/i.test(each.getAttribute(name) || "")));
  const foreign = [...document.querySelectorAll("script, iframe, object, embed, base, meta[http-equiv], style")]
    .filter(each => !(each.tagName === "SCRIPT" && each.getAttribute("src")?.startsWith("ui/")));
  return {
    ran: "ran" in window || [...document.querySelectorAll("iframe")].length > 0,
    polluted: "ran" in {},
    markup: [...events, ...addresses, ...foreign].map(each => each.outerHTML.slice(0, 200)),
  };
}"""
_TEMPT = """() => {
  for (const each of document.querySelectorAll("a, input, img, [tabindex], [title]")) {
    each.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
    each.dispatchEvent(new FocusEvent("focus"));
  }
}"""
_KEPT = """async () => {
  const bases = await (indexedDB.databases?.() ?? []);
  const caches_ = "caches" in window ? await caches.keys() : [];
  return JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, history.state,
    bases, caches_, document.documentElement.outerHTML]);
}"""


def harm(page: Page) -> list[str]:
    """What hostile text has done; empty if nothing. Tempts it first: elements are pointed at and given the focus."""
    page.evaluate(_TEMPT)
    found: dict[str, Any] = page.evaluate(_TRACES)
    did = [
        text for text, true in (("a script ran", found["ran"]), ("a prototype was changed", found["polluted"])) if true
    ]
    return [*did, *(f"markup of its own: {each}" for each in found["markup"])]


def kept(page: Page) -> str:
    """All that a script of the page could read of what is kept, and the page itself: no key may be in it."""
    return str(page.evaluate(_KEPT))
