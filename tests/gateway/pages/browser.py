"""A browser of the simplest kind: it keeps cookies, says whose page it shows, and remembers the token."""

from typing import Any

import httpx

from tests.gateway.admin.office import Office

HERE = "http://127.0.0.1:8000"


class Browser:
    """One browser at an office's door."""

    def __init__(self, office: Office, *, client: str = "127.0.0.1", url: str = HERE) -> None:
        transport = httpx.ASGITransport(office.app, client=(client, 1))
        self.http = httpx.AsyncClient(transport=transport, base_url=url)
        self.csrf = ""

    @property
    def cookie(self) -> str:
        return self.http.cookies.get("axon_session") or ""

    async def ask(self, method: str, path: str, *, site: str | None = "same-origin", **asked: Any) -> httpx.Response:
        """Sends a request as a page of ours sends it; ``site`` is whose page it is, None for an old browser."""
        headers = {**({"sec-fetch-site": site} if site else {}), **asked.pop("headers", {})}
        if self.csrf and method not in ("GET", "HEAD"):
            headers.setdefault("x-axon-csrf", self.csrf)
        return await self.http.request(method, path, headers=headers, **asked)

    async def sign_in(self, **proof: str) -> httpx.Response:
        reply = await self.ask("POST", "/ui/sign-in", json=proof)
        if reply.status_code == 200:
            self.csrf = reply.json()["csrf"]
        return reply

    async def session(self) -> httpx.Response:
        return await self.ask("GET", "/ui/session")


def code_of(reply: httpx.Response) -> tuple[int, str]:
    """The status of a refusal, and its code."""
    return reply.status_code, reply.json()["error"]["code"]
