"""One TLS context for all HTTP clients of a test process: to read the certificates takes 50 ms, and no test needs any.

Each ``httpx.Client``, each ``httpx.get`` of a loop that waits for a server, each client of ``openai`` would read them.
"""

import functools

from httpx._transports import default


def share_context() -> None:
    """From here on clients with the same settings share a context."""
    default.create_ssl_context = functools.cache(default.create_ssl_context)  # type: ignore[attr-defined]
