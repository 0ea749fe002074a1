"""The head of a request without its wish for another protocol. No I/O."""

from collections.abc import Iterable


def plain_head(method: bytes, url: bytes, version: str, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Returns the bytes of the head without ``Upgrade``, neither the header nor the option of ``Connection``.

    The parser takes what follows the head of a request with an upgrade for another protocol, and so for the next
    request if nobody speaks that one. Of this head it reads the body.
    """
    lines = [b"%b %b HTTP/%b" % (method, url, version.encode())]
    for name, value in headers:
        if name == b"connection":
            options = [option.strip() for option in value.split(b",")]
            value = b", ".join(option for option in options if option.lower() != b"upgrade")
        if name != b"upgrade":
            lines.append(b"%b: %b" % (name, value))
    return b"\r\n".join([*lines, b"", b""])
