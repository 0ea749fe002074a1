"""Several schemas of one request: each has its own result, however many others the cache has seen meanwhile."""

from typing import Any

import pytest

from axon.sessions import grammars
from axon.sessions.grammars import Grammars
from axon.text.grammar import Grammar, schema_grammar


async def test_what_is_known_of_a_schema_is_not_lost_to_those_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammars, "_MOST_KEPT", 2)
    found = Grammars()
    schemas: list[dict[str, Any]] = [{"not": {}}, *({"const": number} for number in range(5))]
    asked: list[tuple[Grammar, dict[str, Any]]] = [(schema_grammar(each), each) for each in schemas]
    first = await found.problem(*asked[0])
    assert first
    assert await found.problems(asked, param="tools") == [first, *[""] * 5]
    found.close()
