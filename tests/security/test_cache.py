"""The prefix cache tells no tenant what another has said: shown by what is counted, not by how long it takes."""

import httpx

from axon.domain.sampling import Sampling
from axon.engine.config import EngineConfig
from axon.engine.echo import EchoEngine
from axon.engine.protocol.messages import Add
from tests.journeys.server import Server
from tests.security.keyring import Keyring

PROMPT = "a long prompt that only one tenant has sent " * 40


def _computed(engine: EchoEngine, tenant: str, name: str) -> tuple[int, int]:
    """Tokens that the engine computes until the first token of an answer, and those that it says were cached."""
    sampling = Sampling(max_tokens=1, temperature=0.0)
    engine.add(Add(id=name, prompt_ids=list(PROMPT.encode()), sampling=sampling, seed=1, tenant=tenant))
    num_computed = 0
    while True:
        output = engine.step()
        num_computed += output.counters.batch_tokens
        if output.emitted:
            return num_computed, output.emitted[0].cached


def test_another_tenants_prompt_is_computed_as_if_nobody_had_sent_it() -> None:
    engine = EchoEngine(EngineConfig(kind="echo"))
    cold = _computed(engine, "a", "1")
    assert cold == (len(PROMPT), 0)
    assert _computed(engine, "b", "2") == cold
    again, cached = _computed(engine, "a", "3")
    assert again + cached == len(PROMPT)
    assert cached > len(PROMPT) // 2
    assert _computed(engine, "", "4") == cold
    assert _computed(engine, "a\0", "5") == cold


def test_names_that_could_be_put_together_in_two_ways_share_nothing() -> None:
    """Version and tenant are one salt: neither may end where the other begins."""
    engine = EchoEngine(EngineConfig(kind="echo"))
    cold = _computed(engine, "b\0a", "1")
    for number, tenant in enumerate(["a", "b", "\0b\0a", "b\0", "A"], start=2):
        assert _computed(engine, tenant, str(number)) == cold


def test_a_stranger_who_repeats_a_prompt_is_told_of_no_cached_token(server: Server, keys: Keyring) -> None:
    def computed(key: str) -> tuple[int, int]:
        """Tokens of the prompt that were computed and those that were found, by ledger and usage."""
        ask = {"model": "echo", "prompt": PROMPT, "max_tokens": 1}
        headers = {"Authorization": f"Bearer {key}", "x-axon-ledger": "true"}
        answer = httpx.post(f"{server.url}/v1/completions", json=ask, headers=headers, timeout=60).json()
        ledger = answer["axon"]["ledger"]
        assert ledger["cached_tokens"] == answer["usage"]["prompt_tokens_details"]["cached_tokens"]
        return ledger["prefilled_tokens"], ledger["cached_tokens"]

    cold = (len(PROMPT), 0)
    assert [computed(keys.mine), computed(keys.foreign)] == [cold, cold]
    for key in (keys.mine, keys.foreign):
        prefilled, cached = computed(key)
        assert prefilled + cached == len(PROMPT)
        assert cached > prefilled
