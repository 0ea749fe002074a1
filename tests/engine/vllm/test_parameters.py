"""A sequence's parameters as vLLM takes them."""

from axon.engine.vllm.parameters import biases_of, prompt_of, sampling_of, seed_of
from tests.engine.builders import make_add

EOS = [2, 7]


def test_a_replay_has_its_tokens_behind_the_prompt_and_that_many_fewer_to_come() -> None:
    add = make_add(prompt=[1, 2], output=[3, 4, 5], max_tokens=10, min_tokens=4)
    assert prompt_of(add)["prompt_token_ids"] == [1, 2, 3, 4, 5]
    sampling = sampling_of(add, EOS)
    assert (sampling["max_tokens"], sampling["min_tokens"]) == (7, 1)
    assert sampling_of(make_add(output=[3] * 3, max_tokens=10, min_tokens=2), EOS)["min_tokens"] == 0


def test_blocks_are_salted_by_tenant() -> None:
    assert prompt_of(make_add(tenant="acme"))["cache_salt"] == "acme"
    assert "cache_salt" not in prompt_of(make_add())


def test_end_tokens_are_stop_tokens_unless_they_are_ignored() -> None:
    assert sampling_of(make_add(stop_ids=(9,)), EOS)["stop_token_ids"] == [2, 7, 9]
    ignoring = make_add(stop_ids=(9,), ignore_eos=True)
    assert sampling_of(ignoring, EOS)["stop_token_ids"] == [9]
    assert sampling_of(make_add(grammar="g", ignore_eos=True), EOS)["stop_token_ids"] == EOS
    assert sampling_of(ignoring, EOS)["ignore_eos"], "vLLM's own idea of end tokens never counts"


def test_every_choice_and_every_place_to_go_on_from_has_a_seed_of_its_own() -> None:
    adds = [make_add(seed=seed, choice=choice, output=[1] * n) for seed in (0, 1) for choice in (0, 1) for n in (0, 3)]
    seeds = [seed_of(add) for add in adds]
    assert len(set(seeds)) == len(adds)
    assert all(0 <= seed < 1 << 63 for seed in seeds)
    assert seed_of(make_add(seed=5)) == seed_of(make_add("b", seed=5, tenant="other"))


def test_penalties_of_replayed_tokens_are_biases_since_vllm_takes_them_for_the_prompt() -> None:
    add = make_add(
        output=[4, 4, 5], max_tokens=9, presence_penalty=1.0, frequency_penalty=0.5, logit_bias=((5, 3.0), (6, 1.0))
    )
    assert biases_of(add) == {4: -2.0, 5: 1.5, 6: 1.0}
    assert biases_of(make_add(output=[4], max_tokens=9)) == {}
    assert sampling_of(make_add(), EOS)["logit_bias"] is None


def test_a_prompts_log_probabilities_are_asked_for_once() -> None:
    assert sampling_of(make_add(prompt_logprobs=True), EOS)["prompt_logprobs"] == 0
    assert sampling_of(make_add(prompt_logprobs=True, logprobs=3), EOS)["prompt_logprobs"] == 3
    assert sampling_of(make_add(prompt_logprobs=True, logprobs=3, prompt_top=1), EOS)["prompt_logprobs"] == 1
    assert sampling_of(make_add(prompt_logprobs=True, output=[1]), EOS)["prompt_logprobs"] is None
    assert sampling_of(make_add(logprobs=3), EOS)["prompt_logprobs"] is None
