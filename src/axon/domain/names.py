"""Names that people give: of tenants, plans, models, deployments, aliases and versions. One rule; knows no record."""

import re

ID_RULE = "1 to 64 letters, digits, dots, dashes or underscores, and begin with no dot or dash"
SERVED_RULE = f"{ID_RULE}; slashes may divide several such parts, of 128 characters together"
KEY_RULE = (
    "there is an API key in it, or a part of one, which lists and the audit trail would show: write something else"
)
_KEY = re.compile(r"axk_[0-9A-Za-z_-]{9}")
"""More of a key than its public id, which has eight characters. The secret begins behind it."""
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_MAX_SERVED = 128


def holds_key(text: str) -> bool:
    """Whether a text has so much of an API key in it that it must not be shown as a name."""
    return _KEY.search(text) is not None


def is_id(text: str) -> bool:
    """Whether a tenant, a plan or a record of the registry may have this name."""
    return _ID.fullmatch(text) is not None


def is_served_name(text: str) -> bool:
    """Whether a server may offer a model of its settings by this name: one that the registry takes, or several such
    parts with slashes between them, as in ``org/name``. The registry takes no slash: names are parts of addresses and
    of Kubernetes labels there."""
    return len(text) <= _MAX_SERVED and all(is_id(part) for part in text.split("/"))
