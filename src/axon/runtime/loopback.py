"""Whether an address is of this machine itself. No I/O: names are not looked up."""

from ipaddress import ip_address


def is_loopback(address: str) -> bool:
    """Whether an IP address is one of loopback."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def is_loopback_host(name: str) -> bool:
    """Whether a host's name or IP address is one of loopback."""
    return name == "localhost" or is_loopback(name)
