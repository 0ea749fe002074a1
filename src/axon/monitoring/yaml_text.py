"""Writes plain values as YAML that people can read: blocks, and strings in JSON's quotes. Pure."""

import json
import re
from collections.abc import Mapping, Sequence

Plain = object
"""A string, number, boolean, or a list or mapping of such."""

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


def yaml_text(value: Plain, comment: str = "") -> str:
    """The whole file."""
    head = "".join(f"# {line}\n" for line in comment.splitlines())
    return head + "\n".join(_lines(value)) + "\n"


def _lines(value: Plain) -> list[str]:
    if isinstance(value, Mapping) and value:
        return [line for key, each in value.items() for line in _entry(f"{_scalar(key)}:", each)]
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        return [line for each in value for line in _item(each)]
    return [_scalar(value)]


def _entry(key: str, value: Plain) -> list[str]:
    if _is_block(value):
        return [key, *(f"  {line}" for line in _lines(value))]
    return [f"{key} {_scalar(value)}"]


def _item(value: Plain) -> list[str]:
    first, *rest = _lines(value) if _is_block(value) else [_scalar(value)]
    return [f"- {first}", *(f"  {line}" for line in rest)]


def _is_block(value: Plain) -> bool:
    return isinstance(value, (Mapping, Sequence)) and not isinstance(value, str) and bool(value)


def _scalar(value: Plain) -> str:
    if isinstance(value, str) and _BARE.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False)
