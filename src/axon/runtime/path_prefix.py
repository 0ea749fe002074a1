"""The form of a path under which a proxy shows the server. No I/O."""

import re

_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)+")
_MAX_CHARS = 200


def is_prefix(text: str) -> bool:
    """Whether a text may be a prefix: segments that begin with a slash, none at the end, and no dots alone."""
    if len(text) > _MAX_CHARS or _PREFIX.fullmatch(text) is None:
        return False
    return not {".", ".."} & set(text.split("/"))
