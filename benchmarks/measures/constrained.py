"""Answers that a JSON schema binds, run on an engine. Imports nothing that a machine with a GPU may lack."""

import json
import time
from dataclasses import dataclass
from typing import Any

from axon.domain.sampling import Sampling
from axon.engine.core import EngineCore
from axon.engine.protocol.messages import Add


def schema(fresh: str = "") -> dict[str, Any]:
    """People; ``fresh`` makes it another schema."""
    properties = {
        "name": {"type": "string", "maxLength": 24},
        f"age{fresh}": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["red", "green", "blue", "loud", "quiet"]}, "maxItems": 3},
        "active": {"type": "boolean"},
        "note": {"type": "string"},
    }
    person = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    return {"type": "array", "items": person, "minItems": 100}


def grammar(fresh: str = "") -> str:
    """The schema as a grammar, with no white space, as the server makes it."""
    from llguidance import LLMatcher

    made: str = LLMatcher.grammar_from_json_schema(json.dumps(schema(fresh)), overrides={"whitespace_flexible": False})
    return made


@dataclass(frozen=True, slots=True)
class Driven:
    """What came of some sequences."""

    first_s: float
    """Seconds to the first token of any."""
    tokens_per_s: float
    """Of all together, from the moment at which each has said a token until the first has said its last."""
    tokens: dict[str, list[int]]


def drive(engine: EngineCore, adds: list[Add]) -> Driven:
    """Runs the sequences to their ends."""
    tokens: dict[str, list[int]] = {add.id: [] for add in adds}
    most = {add.id: add.sampling.max_tokens for add in adds}
    told: list[tuple[float, int]] = []
    first_s, num_silent, num_ended = 0.0, len(adds), 0
    started = time.perf_counter()
    for add in adds:
        engine.add(add)
    while engine.has_work:
        output = engine.step()
        assert not output.refused, output.refused
        now = time.perf_counter() - started
        for emitted in output.emitted:
            first_s = first_s or now
            num_silent -= not tokens[emitted.id]
            tokens[emitted.id].append(emitted.token)
            num_ended += len(tokens[emitted.id]) == most[emitted.id]
        if output.emitted and not num_silent and (not num_ended or not told):
            told.append((now, len(output.emitted)))
    (start, _), (end, _) = told[0], told[-1]
    rate = sum(count for _, count in told[1:]) / (end - start) if len(told) > 1 else 0.0
    return Driven(first_s, rate, tokens)


def make_adds(
    prompts: list[list[int]], num_tokens: int, text: str, *, temperature: float = 1.0, name: str = ""
) -> list[Add]:
    """One sequence for each prompt, all with this grammar or, for an empty text, with none."""
    sampling = Sampling(max_tokens=num_tokens, temperature=temperature, ignore_eos=True, grammar=text)
    return [
        Add(id=f"{name}{index}", prompt_ids=prompt, sampling=sampling, seed=index, tenant=name)
        for index, prompt in enumerate(prompts)
    ]
