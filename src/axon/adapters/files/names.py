"""Which ids a file may have, wherever its bytes are. Pure functions."""

import re

from axon.errors import NotFound

_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
"""Nothing that leads out of the place that files are in."""


def is_name(text: str) -> bool:
    """Whether a file may have this id."""
    return _NAME.fullmatch(text) is not None


def checked(file_id: str) -> str:
    """Returns the id; raises ``NotFound`` for one that no file may have."""
    if not is_name(file_id):
        raise NotFound(f"No file has the id '{file_id}'.", code="file_not_found")
    return file_id


def not_there(file_id: str) -> NotFound:
    """The error for a file whose bytes are not there."""
    return NotFound(f"The bytes of file '{file_id}' are not there.", code="file_not_found")
