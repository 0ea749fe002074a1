"""The least length of JSON that a schema allows, in characters. Knows no compiler.

Where a schema leaves no choice, the compiler writes the JSON out at once: an object that requires itself has no end,
and 1,000 equal items of 4 kB are 4 MB. A length may be too small, where a schema allows more than one type.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any

_ROUNDS = 4
"""Times that lengths are computed anew: each can only shrink what schemas that refer to each other seemed to have."""


def longest_of_least(nodes: Iterable[dict[str, Any]], target: Callable[[Any], Any], *, endless: int) -> int:
    """The largest of the least lengths of all these schemas, at most ``endless``. ``target`` follows a ``$ref``."""
    lengths = _Lengths(target, endless)
    nodes = [*nodes]
    for _ in range(_ROUNDS if any("$ref" in node for node in nodes) else 1):
        before = dict(lengths.known)
        for node in reversed(nodes):  # inner ones come behind those that hold them
            lengths.known[id(node)] = min(lengths.compute(node), endless)
        if lengths.known == before:
            break
    return max(lengths.known.values(), default=0)


class _Lengths:
    def __init__(self, target: Callable[[Any], Any], endless: int) -> None:
        self._target, self._endless = target, endless
        self.known: dict[int, int] = {}

    def compute(self, node: dict[str, Any]) -> int:
        """The least length of what a schema allows, by what is known of those inside."""
        found = max(_of_literals(node), self._of_type(node))
        for name in ("anyOf", "oneOf"):
            if members := _list(node.get(name)):
                found = max(found, min(map(self._of, members)))
        if members := _list(node.get("allOf")):
            found = max(found, *map(self._of, members))
        if "$ref" in node:
            found = max(found, self._of(self._target(node["$ref"])))
        return found

    def _of(self, node: Any) -> int:
        return self.known.get(id(node), self._endless) if isinstance(node, dict) else 1

    def _of_type(self, node: dict[str, Any]) -> int:
        match node.get("type"):
            case "object":
                properties = node.get("properties")
                properties = properties if isinstance(properties, dict) else {}
                needed = {name for name in _list(node.get("required")) if isinstance(name, str)}
                return 2 + sum(len(name) + 3 + self._of(properties.get(name)) for name in needed)
            case "array":
                least = node.get("minItems")
                least = least if isinstance(least, int) else 0
                given = node.get("items")
                first = _list(node.get("prefixItems")) or _list(given)
                length = sum(1 + self._of(each) for each in first[:least])
                return 2 + length + max(0, least - len(first)) * (1 + self._of(given))
        return 1


def _of_literals(node: dict[str, Any]) -> int:
    found = len(json.dumps(node["const"])) if "const" in node else 0
    if values := _list(node.get("enum")):
        found = max(found, min(len(json.dumps(value)) for value in values))
    return found


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
