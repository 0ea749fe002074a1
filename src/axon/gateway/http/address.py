"""Which address a request comes from, behind our own proxies. Knows no limit."""


def client_address(peer: str, forwarded: list[bytes], num_proxies: int) -> str:
    """Who is at the other end: the peer itself, or whom the outermost of our own proxies has seen.

    What stands further left in ``X-Forwarded-For`` is the client's own word.
    """
    if not num_proxies:
        return peer
    hops = [hop.strip() for hop in b",".join(forwarded).decode("latin-1").split(",") if hop.strip()]
    return hops[-num_proxies] if len(hops) >= num_proxies else peer
