"""Loads the Lua scripts; each file's first line says what it does. Knows no connection."""

import hashlib
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True, slots=True)
class Script:
    """A script's source, and the SHA-1 by which the server knows it."""

    source: bytes
    sha: str


def load(name: str) -> Script:
    """The script of this name."""
    source = resources.files("axon.adapters.live.redis").joinpath("lua", f"{name}.lua").read_bytes()
    return Script(source, hashlib.sha1(source, usedforsecurity=False).hexdigest())
