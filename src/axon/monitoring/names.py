"""Which metrics an expression reads. Pure."""

import re

_NAME = re.compile(r"\b((?:axon|gen_ai|process)_[a-z0-9_]+|axon:[a-zA-Z0-9_:]+)\b")
_SUFFIXES = ("_bucket", "_count", "_sum")


def metrics_in(expression: str) -> set[str]:
    """Names as they are declared: a histogram without the suffix of its samples."""
    return {_declared(name) for name in _NAME.findall(re.sub(r'"[^"]*"', '""', expression))}


def _declared(name: str) -> str:
    found = next((suffix for suffix in _SUFFIXES if name.endswith(suffix)), "")
    return name.removesuffix(found) if found else name
