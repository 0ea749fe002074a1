"""Nothing below the gateway says a parameter of an API: its sentences would be about a body that it cannot see."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import axon

ROOT = Path(axon.__file__).parent
BELOW = (
    "admission",
    "control",
    "dispatch",
    "domain",
    "engine",
    "ownership",
    "registry",
    "sessions",
    "tenants",
    "worker",
)
PARAMETERS = (
    "max_completion_tokens",
    "max_output_tokens",
    "truncate_prompt_tokens",
    "response_format",
    "finish_reason",
    "top_logprobs",
    "tool_choice",
    "parallel_tool_calls",
    "previous_response_id",
    "stream_options",
    "service_tier",
    "prompt_cache_key",
    "safety_identifier",
    "idempotency-key",
)
_SAID = re.compile("|".join(map(re.escape, PARAMETERS)) + r"|'(?:store|stream|n|stop|messages|input)'", re.IGNORECASE)
_CONVENTION = "OpenTelemetry's names of attributes"
ALLOWED = {"domain/tracing/content.py": _CONVENTION, "domain/tracing/turn_spans.py": _CONVENTION}
"""Files that say one, and why."""


def texts(tree: ast.AST) -> Iterator[str]:
    """The strings of a module but for its docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = ""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def said(path: Path) -> set[str]:
    return {found[0] for text in texts(ast.parse(path.read_text())) for found in _SAID.finditer(text)}


def test_no_package_below_the_gateway_says_a_parameter() -> None:
    files = [path for package in BELOW for path in (ROOT / package).rglob("*.py")]
    assert len(files) > 300
    found = {path.relative_to(ROOT).as_posix(): names for path in files if (names := said(path))}
    assert {name: names for name, names in found.items() if name not in ALLOWED} == {}
    assert found.keys() >= ALLOWED.keys(), "an exception is no longer needed"


@pytest.mark.parametrize("text", ["'store': false", "set max_completion_tokens", "the Idempotency-Key header"])
def test_a_parameter_is_found_in_a_sentence_and_not_in_a_docstring(tmp_path: Path, text: str) -> None:
    path = tmp_path / "module.py"
    path.write_text(f'"""{text}"""\nx = "Please: {text}."\n')
    assert len(said(path)) == 1
    path.write_text(f'"""{text}"""\nx = 1\n')
    assert not said(path)
