"""The bounds of a JSON schema, checked before it is compiled. Knows no compiler.

A schema of a few hundred bytes can take minutes and gigabytes to compile: choices inside ``allOf`` multiply, and so do
nested repeats of a pattern. Each bound is on something whose cost was measured; together they keep a compilation below
a fraction of a second.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from math import lcm, prod
from typing import Any

from axon.errors import InvalidInput
from axon.text.regex_size import written_out

MAX_BYTES = 64 << 10
"""Bytes of a schema, as compact JSON."""
MAX_DEPTH = 48
_MAX_VALUES = 6_000
_MAX_PAIRS = 90_000
"""Pairs of properties that stand in the same object; their names are told apart pairwise."""
_MAX_PATTERNS = 16
"""Patterns for property names in one object."""
_MAX_WRITTEN_OUT = 4_000
"""Characters of all patterns with their repeats written out."""
_MAX_ALTERNATIVES = 48
"""Alternatives that one ``allOf``, or what stands beside an ``anyOf``, multiplies to."""
_MAX_MULTIPLE = 1_000
"""The least common multiple of every ``multipleOf`` in the schema, without their decimal points: as many states does a
lexer have that tells them apart."""
_LEAST_NUMBER = -9_200_000_000_000_000_000
"""The least number that a schema may have. One that rounds to -2**63 makes the compiler call itself without an end,
which ends the whole process."""
_MAX_MEMBERS = 200
"""Members of all ``anyOf``, ``oneOf`` and ``allOf`` together."""
_MAX_STEPS = 2_000
"""Merged properties that are looked at to count the alternatives of an ``allOf``: properties of properties multiply."""
_ANNOTATIONS = frozenset({"$defs", "definitions", "$schema", "$id", "title", "description", "default", "examples"})
_MERGED = ("anyOf", "oneOf", "allOf", "$ref")


class SchemaRefused(InvalidInput):
    """The schema is not supported."""

    code = "invalid_schema"


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raises ``SchemaRefused`` if compiling the schema could cost too much; its own errors are for the compiler."""
    num_values = num_pairs = num_members = size = 0
    multiples: list[int] = []
    for node, depth in _walk(schema):
        num_values += 1
        if depth > MAX_DEPTH:
            raise SchemaRefused(f"it is nested more than {MAX_DEPTH} levels deep")
        if num_values > _MAX_VALUES:
            raise SchemaRefused(f"it has more than {_MAX_VALUES} values")
        if isinstance(node, int | float) and node < _LEAST_NUMBER:
            raise SchemaRefused(f"a number in it is less than {_LEAST_NUMBER}")
        if not isinstance(node, Mapping):
            continue
        num_pairs += _num_entries(node.get("properties")) ** 2
        num_members += sum(len(_list(node.get(name))) for name in ("anyOf", "oneOf", "allOf"))
        size += _size_of_patterns(node)
        if multiple := node.get("multipleOf"):
            multiples.append(_significand(multiple))
        _check_node(node)
    if num_pairs > _MAX_PAIRS:
        raise SchemaRefused(f"its objects have too many properties: one object may have {int(_MAX_PAIRS**0.5)}")
    if size > _MAX_WRITTEN_OUT:
        raise SchemaRefused(
            f"its patterns are too large: with repeats written out, they have {size} characters, and may have "
            f"{_MAX_WRITTEN_OUT}"
        )
    if lcm(*multiples) > _MAX_MULTIPLE:
        raise SchemaRefused(f"the least common multiple of its 'multipleOf' is more than {_MAX_MULTIPLE}")
    if num_members > _MAX_MEMBERS:
        raise SchemaRefused(f"its 'allOf', 'anyOf' and 'oneOf' have more than {_MAX_MEMBERS} members")
    _Alternatives(schema).check()


def _walk(schema: Any) -> Iterator[tuple[Any, int]]:
    stack = [(schema, 1)]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        if isinstance(node, Mapping):
            stack += [(value, depth + 1) for value in node.values()]
        elif isinstance(node, list):
            stack += [(value, depth + 1) for value in node]


def _num_entries(value: Any) -> int:
    return len(value) if isinstance(value, Mapping) else 0


def _check_node(node: Mapping[str, Any]) -> None:
    if _num_entries(node.get("patternProperties")) > _MAX_PATTERNS:
        raise SchemaRefused(f"'patternProperties' has more than {_MAX_PATTERNS} patterns")
    ref = node.get("$ref")
    if isinstance(ref, str) and not ref.startswith("#"):
        raise SchemaRefused(f"'$ref' to '{ref[:100]}' is not supported: a reference must point into the schema itself")


def _size_of_patterns(node: Mapping[str, Any]) -> int:
    pattern = node.get("pattern")
    names = node.get("patternProperties")
    found = [pattern] if isinstance(pattern, str) else []
    found += names if isinstance(names, Mapping) else ()
    return sum(written_out(each) for each in found)


def _significand(multiple: Any) -> int:
    """The digits of a ``multipleOf`` without its decimal point: 0.25 and 25 cost the same."""
    if isinstance(multiple, bool) or not isinstance(multiple, int | float):
        return 1
    if isinstance(multiple, int):
        return abs(multiple) or 1
    return int("".join(map(str, Decimal(repr(multiple)).as_tuple().digits))) or 1


class _Alternatives:
    """Counts how often the compiler would copy a schema where choices meet."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._known: dict[int, int] = {}
        self._num_steps = 0

    def check(self) -> None:
        """Raises ``SchemaRefused`` if one schema would be copied too often."""
        try:
            self._check_each()
        except RecursionError:
            raise SchemaRefused("its references, or what its 'allOf' merges, are nested too deeply") from None

    def _check_each(self) -> None:
        for node, _ in _walk(self._root):
            if isinstance(node, Mapping) and self._of(node) > _MAX_ALTERNATIVES and _merges(node):
                raise SchemaRefused(
                    f"its 'allOf', 'anyOf' and 'oneOf' multiply to more than {_MAX_ALTERNATIVES} alternatives"
                )

    def _of(self, node: Any) -> int:
        if not isinstance(node, Mapping):
            return 1
        if id(node) not in self._known:
            self._known[id(node)] = 1  # a schema that leads back to itself
            self._known[id(node)] = min(self._count(node), 1 << 20)
        return self._known[id(node)]

    def _count(self, node: Mapping[str, Any]) -> int:
        found = 1
        for name in ("anyOf", "oneOf"):
            if members := _list(node.get(name)):
                found *= sum(self._of(each) for each in members)
        if "$ref" in node:
            found *= self._of(self._target(node["$ref"]))
        members = _list(node.get("allOf"))
        return found * prod(self._of(each) for each in members) * self._of_shared(members)

    def _of_shared(self, members: list[Any]) -> int:
        """The alternatives of the properties that several members of an ``allOf`` describe."""
        if len(members) < 2:
            return 1
        self._num_steps += len(members)
        if self._num_steps > _MAX_STEPS:
            raise SchemaRefused("its 'allOf' merges too many properties")
        by_name: dict[str, list[Any]] = {}
        for member in map(self._followed, members):
            properties = member.get("properties")
            for name, value in properties.items() if isinstance(properties, Mapping) else ():
                by_name.setdefault(name, []).append(value)
        return max(
            (prod(map(self._of, each)) * self._of_shared(each) for each in by_name.values() if len(each) > 1), default=1
        )

    def _followed(self, node: Any) -> Mapping[str, Any]:
        for _ in range(16):
            if not isinstance(node, Mapping) or "$ref" not in node:
                break
            node = self._target(node["$ref"])
        return node if isinstance(node, Mapping) else {}

    def _target(self, ref: Any) -> Any:
        """What a local reference points to; None if that is nothing, which the compiler will say."""
        node: Any = self._root
        for part in str(ref).removeprefix("#").split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            node = node.get(part) if isinstance(node, Mapping) else None
        return node


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _merges(node: Mapping[str, Any]) -> bool:
    """Whether more meets in a schema than one list of alternatives, which are not copied."""
    if len(_list(node.get("allOf"))) > 1:
        return True
    return len(node.keys() - _ANNOTATIONS) > 1 and any(name in node for name in _MERGED)
