"""The engines of a process as subjects of profiles: each has a name of its own."""

from types import SimpleNamespace
from typing import Any

from axon.bootstrap.profiles import engines_of


def worker(version: str, pid: int) -> Any:
    return SimpleNamespace(identity=SimpleNamespace(version=version), engine_pid=pid)


def names(*engines: tuple[str, Any]) -> list[tuple[str, int]]:
    return [(each.subject.name, each.subject.pid) for each in engines_of("w", engines)]


def test_an_engine_is_named_by_its_process_and_its_model() -> None:
    assert names(("small", worker("v1", 7)), ("large", worker("v1", 8))) == [("w/small", 7), ("w/large", 8)]


def test_two_versions_of_a_model_have_different_names() -> None:
    found = names(("small", worker("v1", 7)), ("small", worker("v2", 8)), ("large", worker("v1", 9)))
    assert found == [("w/small@v1", 7), ("w/small@v2", 8), ("w/large", 9)]
