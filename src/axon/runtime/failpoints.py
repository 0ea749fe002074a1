"""Named places where a test can make the process die or stall. Off unless AXON_FAILPOINTS names them at start."""

import os
import time
from collections import Counter

_actions: dict[str, str] = {}
_passes: Counter[str] = Counter()
"""How often a place may still be passed."""


def arm(spec: str) -> None:
    """``name=kill,other=stall:3``: what happens when the place is passed, or passed for the third time."""
    _actions.clear()
    _passes.clear()
    for item in filter(None, (part.strip() for part in spec.split(","))):
        name, _, rest = item.partition("=")
        action, _, nth = rest.partition(":")
        if action not in ("kill", "stall"):
            raise ValueError(f"failpoint {name!r}: unknown action {action!r}, use kill or stall")
        if nth and not (nth.isdecimal() and int(nth)):
            raise ValueError(f"failpoint {name!r}: {nth!r} is not a number of passes")
        _actions[name], _passes[name] = action, int(nth or 1) - 1


def failpoint(name: str) -> None:
    """Does nothing, unless armed."""
    if name not in _actions:
        return
    if _passes[name]:
        _passes[name] -= 1
        return
    match _actions[name]:
        case "kill":
            os._exit(86)
        case "stall":
            time.sleep(3600)
