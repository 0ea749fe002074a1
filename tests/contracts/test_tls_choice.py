"""The contract tests that a short run does over TLS: they are there, and they ask every operation of every port."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from axon.ports import batch_store, journal, live, queue, store
from tests.contracts.tls_choice import CHOSEN, is_left, is_over_tls

_NOT_BEHIND_A_SERVICE = {"JournalReader", "TurnWriter", "Markers", "Listener"}
"""Asked by the adapters themselves, on the way of other operations."""


def _functions(file: str) -> dict[str, ast.AsyncFunctionDef | ast.FunctionDef]:
    tree = ast.parse((Path(__file__).parent / file).read_text())
    return {each.name: each for each in ast.walk(tree) if isinstance(each, ast.AsyncFunctionDef | ast.FunctionDef)}


def _function(test: str) -> str:
    """The name of a test without its class."""
    return test.rpartition("::")[2]


def _asked(name: str, functions: dict[str, ast.AsyncFunctionDef | ast.FunctionDef], done: set[str]) -> Iterator[str]:
    """Names of methods that a test calls, by itself or through functions of its file."""
    done.add(name)
    for node in ast.walk(functions[name]):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name) and node.id in functions and node.id not in done:
            yield from _asked(node.id, functions, done)


def test_every_test_that_is_chosen_is_there() -> None:
    for file, tests in CHOSEN.items():
        assert {_function(test) for test in tests} <= set(_functions(file)), file


@pytest.mark.parametrize("module", [queue, live, journal, store, batch_store], ids=lambda module: module.__name__)
def test_every_operation_of_a_port_is_asked_by_one_that_is_chosen(module: object) -> None:
    asked = {
        word
        for file, tests in CHOSEN.items()
        for test in tests
        for word in _asked(_function(test), _functions(file), set())
    }
    ports = [each for _, each in inspect.getmembers(module, inspect.isclass) if getattr(each, "_is_protocol", False)]
    assert ports
    for port in ports:
        if port.__name__ not in _NOT_BEHIND_A_SERVICE:
            wanted = {name for name, value in vars(port).items() if inspect.iscoroutinefunction(value)}
            assert wanted <= asked, port.__name__


def test_what_is_not_chosen_is_left_to_the_long_run() -> None:
    file, tests = next(iter(CHOSEN.items()))
    chosen = f"tests/contracts/{file}::{min(tests)}"
    assert not is_left(f"{chosen}[redis-tls]")
    assert not is_left(f"{chosen}_not[redis]")
    assert is_left(f"{chosen}_not[redis-tls]")
    assert not is_over_tls("tests/edge/test_edge.py::test_one[rabbitmq-tls]")
