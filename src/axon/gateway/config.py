"""The gateway's section of the settings."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """HTTP in, tokens out."""

    host: str = "127.0.0.1"
    """Address to listen on; loopback unless told otherwise."""
    port: int = 8000
    """Port of the API; 0 takes a free one."""
    metrics_host: str = "127.0.0.1"
    """Address of the metrics and probes."""
    metrics_port: int = 8001
    """Port of /metrics, apart from the API, with /livez and /readyz beside it; 0 takes a free one."""
    max_body_bytes: int = 4 << 20
    """Larger bodies are refused with 413."""
    max_header_bytes: int = 64 << 10
    """A request whose headers are longer is refused with 431."""
    header_timeout_s: float = 10.0
    """A connection that has not sent its request's headers by then is closed."""
    body_timeout_s: float = 30.0
    """A request whose body has not come by then is refused with 408."""
    keep_alive_s: int = 60
    """A connection that has brought no further request for so long is closed."""
    write_timeout_s: float = 30.0
    """A client that has taken nothing of its answer for so long is cut off; its stream can be picked up again."""
    max_connections: int = 2000
    """Requests beyond it are answered with 503; connections beyond it serve one request each, if it comes at once."""
    silence_s: float = 15.0
    """A stream that had nothing to say for so long sends an empty chunk."""
    failures_per_minute: float = 100.0
    """Wrong keys that an address may send; beyond, it gets 429 for every key that was not known before. 0: no limit.
    What can be no key, for its form or check sum is wrong, is refused without a look at the store and not counted."""
    proxies: int = 0
    """Proxies of your own before it, each of which adds to X-Forwarded-For; 0 takes the connection's own address."""
    cors_origins: str = ""
    """Origins of web pages whose programs may call the API from a browser (CORS), divided by commas, as in
    https://chat.example.com,http://localhost:3000; * for every page. Empty: browsers let no other site's page call."""
