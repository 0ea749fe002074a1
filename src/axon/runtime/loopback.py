"""Whether an address is of this machine itself. No I/O: names are not looked up."""

from ipaddress import ip_address


def is_loopback(address: str) -> bool:
    """Whether an IP address or a host's name is one of loopback."""
    try:
        return address == "localhost" or ip_address(address).is_loopback
    except ValueError:
        return False
