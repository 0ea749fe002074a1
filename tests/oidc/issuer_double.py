"""An OpenID Connect issuer for tests: a real HTTP server that signs what it is told to sign, right or wrong."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT_ID, SECRET = "axon-pages", "s3cr3t:/+%"
_BITS = 2048


class IssuerDouble:
    """What it says of people, and what it was asked."""

    def __init__(self, server: ThreadingHTTPServer, now: float, host: str) -> None:
        self.server = server
        self.url = f"http://{host}:{server.server_address[1]}"
        self.now = now
        self.keys = {"one": rsa.generate_private_key(public_exponent=65537, key_size=_BITS)}
        self.signs_with = "one"
        self.shown_keys: list[str] | None = None
        """Ids of the keys that it shows; all of them unless it is said."""
        self.claims: dict[str, Any] = {"email": "ada@example.com", "email_verified": True, "groups": ["staff", "ops"]}
        self.changed: dict[str, Any] = {}
        """Claims that take the place of the right ones; None leaves one out."""
        self.header: dict[str, Any] = {}
        self.token: str | None = None
        """Sent in place of one that it makes."""
        self.description: dict[str, Any] = {}
        self.broken: dict[str, tuple[int, bytes]] = {}
        """Answers in place of the right ones, by path."""
        self.asked: list[str] = []
        self.paths: list[str] = []
        """What browsers asked it for, with queries."""
        self.forms: list[dict[str, str]] = []
        self.logins: list[str] = []
        self._attempts: dict[str, dict[str, str]] = {}

    def authorize(self, address: str) -> str:
        """What its page does when the person agrees: returns the code."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert asked["response_type"] == "code"
        assert asked["client_id"] == CLIENT_ID
        assert asked["code_challenge_method"] == "S256"
        code = f"code-{len(self._attempts)}"
        self._attempts[code] = asked
        return code

    def make_token(self, nonce: str) -> str:
        right = {
            "iss": self.url,
            "aud": CLIENT_ID,
            "sub": "person-1",
            "iat": int(self.now),
            "exp": int(self.now) + 300,
            "nonce": nonce,
        }
        claims = {**right, **self.claims, **self.changed}
        body = {name: value for name, value in claims.items() if value is not None}
        headers = {"kid": self.signs_with, **self.header}
        return jwt.encode(body, self.keys[self.signs_with], algorithm="RS256", headers=headers)

    def answer(self, method: str, path: str, form: dict[str, str]) -> tuple[int, bytes]:
        self.asked.append(path)
        if path in self.broken:
            return self.broken[path]
        if path == "/.well-known/openid-configuration":
            return 200, json.dumps(self._described()).encode()
        if path == "/keys":
            shown = self.shown_keys if self.shown_keys is not None else list(self.keys)
            return 200, json.dumps({"keys": [_public(name, self.keys[name]) for name in shown]}).encode()
        if (method, path) == ("POST", "/token"):
            return self._exchanged(form)
        return 404, b"{}"

    def _described(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            **self.description,
        }

    def _exchanged(self, form: dict[str, str]) -> tuple[int, bytes]:
        self.forms.append(form)
        attempt = self._attempts.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if attempt is None or attempt["code_challenge"] != challenge:
            return 400, b'{"error": "invalid_grant"}'
        return 200, json.dumps({"id_token": self.token or self.make_token(attempt["nonce"])}).encode()


def _public(name: str, key: rsa.RSAPrivateKey) -> dict[str, Any]:
    found: dict[str, Any] = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {**found, "kid": name, "use": "sig", "alg": "RS256"}


@contextmanager
def running_issuer(now: float, host: str = "127.0.0.1") -> Iterator[IssuerDouble]:
    """Runs an issuer on a free port of loopback, under a name of loopback; ``now`` is its time."""
    double: IssuerDouble

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            double.logins.append(self.headers.get("authorization", ""))
            self._answer({name: values[0] for name, values in parse_qs(body).items()})

        def _answer(self, form: dict[str, str]) -> None:
            double.paths.append(self.path)
            if urlsplit(self.path).path == "/authorize":
                self._send_back()
                return
            status, content = double.answer(self.command, urlsplit(self.path).path, form)
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            if status == 302:
                self.send_header("location", f"{double.url}/keys")
            self.end_headers()
            self.wfile.write(content)

        def _send_back(self) -> None:
            """Its page, of which nothing is seen: the person agrees at once."""
            asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
            back = urlencode({"state": asked["state"], "code": double.authorize(self.path)})
            self.send_response(302)
            self.send_header("location", f"{asked['redirect_uri']}?{back}")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    double = IssuerDouble(server, now, host)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield double
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
