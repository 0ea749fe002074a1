"""Named places where a test can make the process die or stall. Off unless AXON_FAILPOINTS names them at start."""

import os
import time

_actions: dict[str, str] = {}


def arm(spec: str) -> None:
    """``name=kill,other=stall``: what happens when the place is passed."""
    _actions.clear()
    for item in filter(None, (part.strip() for part in spec.split(","))):
        name, _, action = item.partition("=")
        if action not in ("kill", "stall"):
            raise ValueError(f"failpoint {name!r}: unknown action {action!r}, use kill or stall")
        _actions[name] = action


def failpoint(name: str) -> None:
    """Does nothing, unless armed."""
    if not _actions:
        return
    match _actions.get(name):
        case "kill":
            os._exit(86)
        case "stall":
            time.sleep(3600)
