"""Finds the client's IP address behind the operator's own proxies. Knows no limit."""


def client_address(peer: str, forwarded: list[bytes], num_proxies: int) -> str:
    """Returns the TCP peer's address, or, behind ``num_proxies`` of our own, the one that the outermost of them saw.

    Each proxy appends an address to ``X-Forwarded-For``; entries further left came from the client and may be forged.
    """
    if not num_proxies:
        return peer
    hops = [hop.strip() for hop in b",".join(forwarded).decode("latin-1").split(",") if hop.strip()]
    return hops[-num_proxies] if len(hops) >= num_proxies else peer
