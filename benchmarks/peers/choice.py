"""Which peers are compared: all of them, unless some are named. Pure; starts and installs nothing.

A peer that is silently missing flatters us, so one that cannot be run is an error until the user leaves it out by name.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.peers.engines import FAMILIES, NUM_THREADS, Engine, installed_peers, missing_peers

Manifest = Mapping[str, dict[str, Any]]


class CannotCompare(Exception):
    """The peers that are wanted cannot all be run; the message says which, why, and what to do."""


def choose_peers(
    manifest: Manifest, *, only: Sequence[str] = (), without: Sequence[str] = (), threads: int = NUM_THREADS
) -> list[Engine]:
    """The peers whose names begin as one of ``only``, by default all, and as none of ``without``."""
    engines = installed_peers(manifest, threads)
    for name in (*only, *without):
        if not any(_meets(name, each) for each in (*FAMILIES, *(engine.name for engine in engines))):
            raise CannotCompare(f"there is no peer {name}: choose among {', '.join(FAMILIES)}")
    reasons = missing_peers(manifest)
    absent = [
        family
        for family in FAMILIES
        if (family not in manifest or family in reasons)
        and (not only or any(_meets(name, family) for name in only))
        and not any(family.startswith(name) for name in without)
    ]
    if absent:
        told = "; ".join(
            f"{family} cannot be run here: {reasons.get(family, 'it is not installed')}" for family in absent
        )
        raise CannotCompare(f"{told}. Install with `make bench-peers`, or leave out with --without {' '.join(absent)}.")
    chosen = [
        engine
        for engine in engines
        if (not only or any(engine.name.startswith(name) for name in only))
        and not any(engine.name.startswith(name) for name in without)
    ]
    if not chosen:
        raise CannotCompare("no peer is left to compare with; `make bench-peers` installs them")
    return chosen


def _meets(name: str, other: str) -> bool:
    """Whether one begins as the other: ``llama`` names the family, ``llama.cpp-q8_0`` one of its engines."""
    return other.startswith(name) or name.startswith(f"{other}-")
