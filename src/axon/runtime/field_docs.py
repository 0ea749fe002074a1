"""Describes the fields of a dataclass in words: type, default and docstring. Knows no settings."""

import ast
import inspect
import textwrap
from dataclasses import MISSING, Field
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin


def inner_type(hint: Any) -> Any:
    """``Path`` for ``Path | None``: None means unset and cannot be written."""
    if get_origin(hint) in (Union, UnionType):
        return next(each for each in get_args(hint) if each is not NoneType)
    return hint


def type_text(hint: Any) -> str:
    """The type in a person's words, such as ``a whole number``."""
    hint = inner_type(hint)
    if get_origin(hint) is Literal:
        return " or ".join(str(each) for each in get_args(hint))
    names = {str: "text", int: "a whole number", float: "a number", bool: "true or false", Path: "a path"}
    return names[hint]


def default_text(each: "Field[Any]") -> str:
    """The default as text: the field's own words for it (metadata ``default``), else the value."""
    if "default" in each.metadata:
        return str(each.metadata["default"])
    assert each.default is not MISSING, f"{each.name} needs a default in words"
    return str(each.default)


@cache
def field_docs(owner: type) -> dict[str, str]:
    """Docstrings below a dataclass's fields, read from the source, because Python discards them."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(node, ast.ClassDef)
    docs = {}
    for statement, below in zip(node.body, node.body[1:], strict=False):
        if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            docs[statement.target.id] = inspect.cleandoc(str(below.value.value))
    return docs
