"""The gateway's section of the settings."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """Settings of the HTTP server: addresses, limits and timeouts."""

    host: str = "127.0.0.1"
    """Address to listen on; loopback by default."""
    port: int = 8000
    """Port of the API; 0 takes a free one."""
    metrics_host: str = "127.0.0.1"
    """Address of the metrics and probes."""
    metrics_port: int = 8001
    """Port of /metrics, apart from the API, with /livez and /readyz beside it; 0 takes a free one."""
    processes: int = field(default=0, metadata={"default": "1 below 8 cores, else a quarter of them, at most 4"})
    """Number of processes that serve the API's port; with more than one, a further process starts and watches them.
    Each holds to the limits below by itself."""
    max_body_bytes: int = 4 << 20
    """A request with a larger body is refused with 413."""
    max_held_body_bytes: int = 128 << 20
    """Bytes of request bodies that the gateway holds at once, each until its turn is accepted; a request beyond them is
    refused with 503. One body of the largest size is always taken."""
    max_tenant_body_bytes: int = 32 << 20
    """The same for the bodies of one tenant, whose requests are then refused with 429."""
    max_header_bytes: int = 64 << 10
    """A request with longer headers is refused with 431."""
    header_timeout_s: float = 10.0
    """A connection that takes longer to send its request's headers is closed."""
    body_timeout_s: float = 30.0
    """A request whose body takes longer to arrive is refused with 408."""
    keep_alive_s: int = 60
    """An idle connection is closed after this time without another request (HTTP keep-alive)."""
    write_timeout_s: float = 30.0
    """The connection of a client that reads nothing of its answer for this long is reset; its stream can be resumed."""
    max_tenant_sockets: int = 100
    """WebSockets that one tenant may have open at this gateway; a handshake beyond them is refused with 429."""
    socket_lifetime_s: float = 3600.0
    """A WebSocket is closed after this time, with the error websocket_connection_limit_reached; its streams can be
    resumed over another."""
    socket_ping_s: float = 20.0
    """A WebSocket is pinged after this time of silence, and closed if no pong comes within the same time; 0 sends no
    pings."""
    max_connections: int = 2000
    """Requests in excess of this number are answered with 503. Connections in excess of it serve one request each, and
    are closed if its headers take more than 2 s."""
    silence_s: float = 15.0
    """A stream that has no new token for this long sends an empty chunk, so that no proxy closes it."""
    failures_per_minute: float = 100.0
    """Number of wrong keys that one address may send in a minute; after that it gets 429 for every key that is not in
    the cache of valid ones. 0 sets no limit. Text with the wrong form or check sum of a key is refused without a look
    at the store and is not counted."""
    max_texts: int = 8
    """Tokenizers and templates of registered versions that are kept in memory; the least recently used go first."""
    proxies: int = 0
    """Number of your own reverse proxies in front of the gateway, each of which adds to X-Forwarded-For; with 0 the
    connection's own address is the client's."""
    ollama_without_key: bool = False
    """Lets programs on this machine use Ollama's routes (/api/...) without a key, as the tenant of the development key:
    over loopback alone, and neither from a web page nor through a proxy. Needs a loopback host, and
    proxies = 0. Do not use it behind a proxy on this machine: one that adds none of X-Forwarded-For, Forwarded,
    X-Real-IP and Via cannot be recognised, and all its clients would be let in."""
    path_prefix: str = ""
    """The path under which a proxy shows this server, as in /axon; it is cut off the paths of requests that have it,
    and the pages' cookie is good below it alone. Where it is empty and proxies is not 0, X-Forwarded-Prefix says
    it."""
    web_session_idle_s: float = 12 * 3600.0
    """A browser that is signed in is signed out after this time without a request."""
    web_session_s: float = 7 * 24 * 3600.0
    """A browser is signed out after this time in any case."""
    max_key_web_sessions: int = 20
    """Browsers that may be signed in as one key at once, or as one person who has it by OpenID Connect; the oldest is
    signed out for one more."""
    oidc_issuer: str = ""
    """Address of an OpenID Connect issuer, by which people sign in at the pages without a key; empty for none. Needs
    the extra oidc, and the four settings below it."""
    oidc_client_id: str = ""
    """Name of this server at the issuer."""
    oidc_secret_file: str = ""
    """File with the secret that the issuer gave to this server; empty for a public client, which PKCE protects."""
    oidc_redirect_url: str = ""
    """Address to which the issuer sends people back, as it is registered there: https://axon.example.com/ui/oidc/callback
    with the path of the pages before it."""
    oidc_keys: str = ""
    """Who signs in as which key: values of the claim and ids of keys, as in platform=k1a2b3c4,acme-staff=d5e6f7g8. The
    first that fits counts; whoever has none is not let in."""
    oidc_claim: str = "email"
    """Claim of the ID token that oidc_keys names values of: a text, or a list of texts as groups often is."""
    oidc_scope: str = "openid email"
    """Scopes that the issuer is asked for, separated by spaces."""
    cors_origins: str = ""
    """Origins of web pages that may call the API from a browser (CORS), separated by commas, as in
    https://chat.example.com,http://localhost:3000; * allows every page. By default no other site's page may call it."""
