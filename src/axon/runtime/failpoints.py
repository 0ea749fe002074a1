"""Failpoints: named points in the code where a test kills or stalls the process. Off unless AXON_FAILPOINTS is set."""

import os
import time
from collections import Counter

_actions: dict[str, str] = {}
_passes: Counter[str] = Counter()
"""Number of times that each failpoint may still be passed before it acts."""


def arm(spec: str) -> None:
    """``name=kill,other=stall:3``: the action on the first pass, or on the third one."""
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
    """Runs the failpoint's action if it is armed; otherwise does nothing."""
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
