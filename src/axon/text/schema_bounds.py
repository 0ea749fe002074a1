"""The bounds of a JSON schema, checked before it is compiled. Knows no compiler.

A schema of a few hundred bytes can take minutes and gigabytes to compile: choices inside ``allOf`` multiply, and so do
nested repeats of a pattern. Each bound is on something whose cost was measured; together they keep a compilation below
a fraction of a second.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from math import lcm, prod
from typing import Any
from urllib.parse import unquote

from axon.errors import InvalidInput
from axon.text.regex_size import written_out
from axon.text.schema_length import longest_of_least

MAX_BYTES = 64 << 10
"""Bytes of a schema, as compact JSON."""
MAX_DEPTH = 48
_MAX_VALUES = 6_000
_MAX_PAIRS = 90_000
"""Pairs of properties that stand in the same object; their names are told apart pairwise."""
_MAX_PROPERTIES = 1_000
"""Properties of all objects together."""
_MAX_REGEXES = 250
"""Bounds of numbers, and formats: each becomes a regex, at up to half a millisecond."""
_MAX_COMPOUND = 300
"""Lists and objects in all values of ``const`` and ``enum``."""
_MAX_COMPARED = 1_500
"""Values of ``enum`` in the alternatives of all ``oneOf``."""
_MAX_LENGTH = 32 << 10
"""Characters of the shortest JSON that a schema allows. What leaves no choice is written out at once."""
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
_MAX_CHAIN = 100
"""Schemas that lead to one another by ``$ref`` and alternatives, with no property or item between them."""
_ANNOTATIONS = frozenset({"$defs", "definitions", "$schema", "$id", "title", "description", "default", "examples"})
_MERGED = ("anyOf", "oneOf", "allOf", "$ref")


class SchemaRefused(InvalidInput):
    """The schema is not supported."""

    code = "invalid_schema"


def too_long(text: str) -> str:
    """Why a grammar's text is not even read; empty if it is."""
    return f"it has {len(text)} bytes, and may have {MAX_BYTES}" if len(text) > MAX_BYTES else ""


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raises ``SchemaRefused`` if compiling the schema could cost too much; its own errors are for the compiler."""
    check_schemas([schema])


def check_schemas(schemas: Iterable[Mapping[str, Any]]) -> None:
    """The same for several schemas that are compiled together: most bounds are on all of them."""
    nodes: list[dict[str, Any]] = []
    num_values = 0
    for schema in schemas:
        own: list[dict[str, Any]] = []
        for node, depth in _walk(schema):
            num_values += 1
            if depth > MAX_DEPTH:
                raise SchemaRefused(f"it is nested more than {MAX_DEPTH} levels deep")
            if num_values > _MAX_VALUES:
                raise SchemaRefused(f"it has more than {_MAX_VALUES} values")
            if isinstance(node, int | float) and node < _LEAST_NUMBER:
                raise SchemaRefused(f"a number in it is less than {_LEAST_NUMBER}")
            if isinstance(node, dict):
                _check_node(node)
                if own and isinstance(node.get("$id"), str):
                    raise SchemaRefused("'$id' is supported at the schema's root only")
                own.append(node)
        _check_relations(schema, own)
        nodes += own
    _check_counts(nodes)


def _check_relations(schema: Mapping[str, Any], nodes: Sequence[dict[str, Any]]) -> None:
    """Checks what one schema's parts make of each other."""
    alternatives = _Alternatives(schema, nodes)
    alternatives.check(nodes)
    if longest_of_least(nodes, alternatives.target, endless=_MAX_LENGTH + 1) > _MAX_LENGTH:
        raise SchemaRefused(f"what it requires has no end, or more than {_MAX_LENGTH} characters")


def _check_counts(nodes: Sequence[dict[str, Any]]) -> None:
    """Checks what counts over the whole schema."""
    num_properties = [_num_entries(node.get("properties")) for node in nodes]
    if sum(number**2 for number in num_properties) > _MAX_PAIRS:
        raise SchemaRefused(f"its objects have too many properties: one object may have {int(_MAX_PAIRS**0.5)}")
    if sum(num_properties) > _MAX_PROPERTIES:
        raise SchemaRefused(f"its objects have more than {_MAX_PROPERTIES} properties together")
    if (size := sum(map(_size_of_patterns, nodes))) > _MAX_WRITTEN_OUT:
        raise SchemaRefused(
            f"its patterns are too large: with repeats written out, they have {size} characters, and may have "
            f"{_MAX_WRITTEN_OUT}"
        )
    if lcm(*(_significand(node["multipleOf"]) for node in nodes if node.get("multipleOf"))) > _MAX_MULTIPLE:
        raise SchemaRefused(f"the least common multiple of its 'multipleOf' is more than {_MAX_MULTIPLE}")
    if sum(len(_list(node.get(name))) for node in nodes for name in ("anyOf", "oneOf", "allOf")) > _MAX_MEMBERS:
        raise SchemaRefused(f"its 'allOf', 'anyOf' and 'oneOf' have more than {_MAX_MEMBERS} members")
    if sum(map(_num_regexes, nodes)) > _MAX_REGEXES:
        raise SchemaRefused(f"it has more than {_MAX_REGEXES} bounds of numbers and formats; a format counts twice")
    if sum(map(_num_compound, nodes)) > _MAX_COMPOUND:
        raise SchemaRefused(f"the values of its 'const' and 'enum' have more than {_MAX_COMPOUND} lists and objects")
    if sum(map(_num_compared, nodes)) > _MAX_COMPARED:
        raise SchemaRefused(f"the alternatives of its 'oneOf' have more than {_MAX_COMPARED} values of 'enum'")


def _num_regexes(node: dict[str, Any]) -> int:
    """The regexes that the compiler makes for a schema's numbers and formats, by what they cost."""
    found = sum(name in node for name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"))
    if isinstance(node.get("format"), str):
        found += 2 + ("minLength" in node) + ("maxLength" in node)
    return found


def _num_compound(node: dict[str, Any]) -> int:
    """The lists and objects in the values that a schema names; each becomes a grammar of its own."""
    values = [*_list(node.get("enum")), node.get("const")]
    return sum(isinstance(each, dict | list) for value in values for each, _ in _walk(value))


def _num_compared(node: dict[str, Any]) -> int:
    """The values of the alternatives of a ``oneOf``, which are compared pairwise."""
    members = (each for each in _list(node.get("oneOf")) if isinstance(each, dict))
    return sum(len(_list(each.get("enum"))) for each in members)


def _walk(schema: Any) -> Iterator[tuple[Any, int]]:
    stack = [(schema, 1)]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        if isinstance(node, dict):
            stack += [(value, depth + 1) for value in node.values()]
        elif isinstance(node, list):
            stack += [(value, depth + 1) for value in node]


def _num_entries(value: Any) -> int:
    return len(value) if isinstance(value, dict) else 0


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
    found += names if isinstance(names, dict) else ()
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

    def __init__(self, root: Mapping[str, Any], nodes: Iterable[dict[str, Any]]) -> None:
        self._root = root
        self._anchors = {name: node for node in nodes if isinstance(name := node.get("$anchor"), str)}
        self._known: dict[int, int] = {}
        self._num_steps = 0
        self._depth = 0
        """Schemas that are being counted now, each for the one before."""

    def check(self, nodes: Iterable[dict[str, Any]]) -> None:
        """Raises ``SchemaRefused`` if one of these schemas would be copied too often."""
        try:
            self._check_each(nodes)
        except RecursionError:
            raise SchemaRefused("its references, or what its 'allOf' merges, are nested too deeply") from None

    def _check_each(self, nodes: Iterable[dict[str, Any]]) -> None:
        for node in nodes:
            if self._of(node) > _MAX_ALTERNATIVES and _merges(node):
                raise SchemaRefused(
                    f"its 'allOf', 'anyOf' and 'oneOf' multiply to more than {_MAX_ALTERNATIVES} alternatives"
                )

    def _of(self, node: Any) -> int:
        if not isinstance(node, dict):
            return 1
        if id(node) not in self._known:
            self._known[id(node)] = 1  # a schema that leads back to itself
            self._depth += 1
            if self._depth > _MAX_CHAIN:
                raise SchemaRefused(f"its '$ref' and alternatives lead through more than {_MAX_CHAIN} schemas in a row")
            self._known[id(node)] = min(self._count(node), 1 << 20)
            self._depth -= 1
        return self._known[id(node)]

    def _count(self, node: Mapping[str, Any]) -> int:
        found = 1
        for name in ("anyOf", "oneOf"):
            if members := _list(node.get(name)):
                found *= sum(self._of(each) for each in members)
        if "$ref" in node:
            found *= self._of(self.target(node["$ref"]))
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
            for name, value in properties.items() if isinstance(properties, dict) else ():
                by_name.setdefault(name, []).append(value)
        return max(
            (prod(map(self._of, each)) * self._of_shared(each) for each in by_name.values() if len(each) > 1), default=1
        )

    def _followed(self, node: Any) -> Mapping[str, Any]:
        for _ in range(16):
            if not isinstance(node, dict) or "$ref" not in node:
                break
            node = self.target(node["$ref"])
        return node if isinstance(node, dict) else {}

    def target(self, ref: Any) -> Any:
        """What a local reference points to; None if that is nothing, which the compiler will say."""
        fragment = unquote(str(ref).removeprefix("#"))
        if fragment and not fragment.startswith("/"):
            return self._anchors.get(fragment)
        node: Any = self._root
        for part in fragment.split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            if isinstance(node, list):
                node = node[int(part)] if part.isdecimal() and int(part) < len(node) else None
            else:
                node = node.get(part) if isinstance(node, dict) else None
        return node


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _merges(node: Mapping[str, Any]) -> bool:
    """Whether more meets in a schema than one list of alternatives, which are not copied."""
    if len(_list(node.get("allOf"))) > 1:
        return True
    return len(node.keys() - _ANNOTATIONS) > 1 and any(name in node for name in _MERGED)
