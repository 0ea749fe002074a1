"""Requests that follow from a seed, and what the model answers them when nothing goes wrong."""

import hashlib
import json
import os
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.faults.doors import door_of
from tests.faults.history import Ask, Told
from tests.faults.model import CHARACTERS, NAME
from tests.journeys.events import Server
from tests.vllm_environment import VARIABLE

_KINDS = ("greedy", "seeded", "pair")
_LETTERS = CHARACTERS[:95]
_NUM_TOKENS = (40, 80)
_NUM_PROMPT_CHARS = (20, 80)
_LONG_PROMPT_CHARS = 300
_AT_ONCE = 12
NUM_ASKS = 30


def make_asks(seed: int, num_asks: int = NUM_ASKS) -> list[Ask]:
    """Greedy ones, seeded ones, and pairs of answers to one prompt; every fifth prompt takes a while to read. Of vLLM
    greedy ones alone: what it draws after a failover is not what it would have drawn."""
    rng = random.Random(f"asks/{seed}")
    kinds = _KINDS[:1] if os.environ.get(VARIABLE) else _KINDS  # vLLM promises no more
    return [_ask(number, rng, kinds[number % len(kinds)]) for number in range(num_asks)]


def _ask(number: int, rng: random.Random, kind: str) -> Ask:
    num_chars = _LONG_PROMPT_CHARS if number % 5 == 4 else rng.randint(*_NUM_PROMPT_CHARS)
    prompt, num_tokens = "".join(rng.choices(_LETTERS, k=num_chars)), rng.randint(*_NUM_TOKENS)
    body: dict[str, Any] = {"model": NAME, "prompt": prompt, "max_tokens": num_tokens, "min_tokens": num_tokens}
    match kind:
        case "greedy":
            body |= {"temperature": 0}
        case "seeded":
            body |= {"temperature": 1, "seed": rng.randrange(1 << 31)}
        case "pair":
            body |= {"temperature": 0.9, "seed": rng.randrange(1 << 31), "n": 2}
    return Ask(name=f"{kind}-{number}", body=body)


def undisturbed(server: Server, asks: Sequence[Ask], cache: Path | None = None) -> list[Ask]:
    """The asks with their answers, had before anything goes wrong; with a folder, once for all runs of a version."""
    if cache is None:
        return _answered(server, asks)
    with server.client() as http:
        reply = http.post(asks[0].route, json=asks[0].body)
    assert reply.status_code == 200, reply.text
    version = reply.json()["system_fingerprint"]
    mark = hashlib.sha256(json.dumps([version, [ask.body for ask in asks]]).encode()).hexdigest()[:16]
    path = cache / f"answers-{mark}.json"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([ask.texts for ask in _answered(server, asks)]))
    texts = json.loads(path.read_text())
    return [replace(ask, texts=tuple(each)) for ask, each in zip(asks, texts, strict=True)]


def _answered(server: Server, asks: Sequence[Ask]) -> list[Ask]:
    def answered(ask: Ask) -> Ask:
        told = Told(client=0, ask=ask.name, asked_at=0.0)
        door = door_of(ask, told, lambda: 0.0)
        with http.stream("POST", ask.route, json=door.body(streams=True)) as reply:
            assert reply.status_code == 200, reply.read()
            told.stream_id = reply.headers["x-axon-stream"]
            errors = [error for line in reply.iter_lines() if (error := door.line(line))]
        assert (told.num_done, errors, told.error) == (1, [], ""), f"{ask.name}: {errors} {told.error}"
        return replace(ask, texts=tuple(told.text(choice) for choice in range(ask.num_choices)))

    with server.client() as http, ThreadPoolExecutor(_AT_ONCE) as at_once:
        return list(at_once.map(answered, asks))
