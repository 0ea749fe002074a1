"""A model that is cut over ranks says what the whole one says."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from axon.engine.engine import Engine
from axon.engine.load.architecture import read_architecture
from tests.engine.builders import RELATIVES, make_add, make_tiny_llama, run_to_end, with_config
from tests.engine.checkpoints import NEWER, make_checkpoint
from tests.engine.ranks.group import CUTTABLE, Group, opened

PROMPTS = [[(7 * index + 3 * length) % 250 for index in range(length)] for length in (1, 16, 40)]


def make_adds(max_tokens: int = 16, **sampling: Any) -> list[Any]:
    return [
        make_add(str(index), prompt=prompt, max_tokens=max_tokens, ignore_eos=True, seed=index, **sampling)
        for index, prompt in enumerate(PROMPTS)
    ]


@pytest.fixture(scope="module")
def cuttable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_llama(tmp_path_factory.mktemp("models") / "tiny", **CUTTABLE)


@pytest.fixture(scope="module")
def pair(cuttable: Path) -> Iterator[Group]:
    """Two ranks of it, for the tests that leave them as they were."""
    with opened(cuttable, 2) as group:
        group.ready()
        yield group


@pytest.mark.long("ranks")
@pytest.mark.parametrize(
    ("name", "size"),
    [*((name, 2) for name in (*RELATIVES, *NEWER)), (next(iter(RELATIVES)), 4), (next(iter(NEWER)), 4)],
)
def test_greedy_tokens_of_every_architecture_equal_those_of_one_rank(name: str, size: int, tmp_path: Path) -> None:
    if name in NEWER:
        folder = make_checkpoint(tmp_path / name, name, **CUTTABLE)
    else:
        folder = make_tiny_llama(tmp_path / name, **RELATIVES[name] | CUTTABLE)
    whole = run_to_end(Engine(with_config(), folder), make_adds())
    with opened(folder, size) as group:
        assert group.ready().kernel == f"torch-float32-tp{size}"
        assert group.run(make_adds()) == whole


@pytest.mark.long("ranks")
def test_sampled_tokens_and_a_vocabulary_that_does_not_divide(tmp_path: Path) -> None:
    folder = make_tiny_llama(tmp_path / "odd", **CUTTABLE | {"vocab_size": 271, "tie_word_embeddings": False})
    sampling: dict[str, Any] = {"temperature": 0.9, "top_p": 0.9, "presence_penalty": 0.4}
    whole = run_to_end(Engine(with_config(), folder), make_adds(**sampling))
    with opened(folder, 2) as group:
        group.ready()
        assert group.run(make_adds(**sampling)) == whole


def test_a_row_is_its_own_in_a_group_too(pair: Group) -> None:
    adds = make_adds(temperature=1.0)
    together = pair.run(adds)
    assert {add.id: pair.run([add])[add.id] for add in adds} == together


def test_a_prompts_log_probabilities_are_those_of_one_rank_and_in_a_batch_those_of_a_prompt_alone(
    cuttable: Path, pair: Group
) -> None:
    adds = make_adds(max_tokens=2, prompt_logprobs=True, prompt_top=3)
    scored_by_one: dict[str, Any] = {}
    engine = Engine(with_config(), cuttable)
    for add in adds:
        engine.add(add)
    while engine.has_work:
        for scored in engine.step().scored:
            scored_by_one.setdefault(scored.id, []).extend(scored.logprobs)
    pair.run(adds)
    together = dict(pair.scored)
    assert {id: len(scores) for id, scores in together.items()} == {"1": 15, "2": 39}
    for id, scores in together.items():
        for (logprob, rank, top), (own_logprob, own_rank, own_top) in zip(scores, scored_by_one[id], strict=True):
            assert (rank, [each for each, _ in top]) == (own_rank, [each for each, _ in own_top])
            assert logprob == pytest.approx(own_logprob, abs=1e-4)
            assert [each for _, each in top] == pytest.approx([each for _, each in own_top], abs=1e-4)
    for add in adds[1:]:
        pair.run([add])
        assert pair.scored == {add.id: together[add.id]}


@pytest.mark.long("ranks")
def test_blocks_come_back_to_every_rank(cuttable: Path) -> None:
    """Conversations that take each other's blocks, and get their own back from each rank's own host memory."""
    adds = [make_add(f"{number}", prompt=[number] * 40, max_tokens=8, ignore_eos=True) for number in range(5)]
    whole = run_to_end(Engine(with_config(), cuttable), adds)
    few = 13 * 4 * 2 * 3 * 8 * 4  # blocks of a KV head: one conversation
    with opened(cuttable, 2, kv_memory_bytes=few, kv_host_bytes=1 << 20) as group:
        group.ready()
        for _ in range(2):
            for add in adds:
                assert group.run([add]) == {add.id: whole[add.id]}
        assert group.last.shelf is not None
        assert group.last.shelf.loaded_tokens > 0


def test_what_a_rank_sends_is_what_the_formula_says(cuttable: Path, pair: Group) -> None:
    """All-reduces of the embedding and of two parts of each layer, of which one of two ranks sends the whole once.

    A prompt of 8 is a tile of 8 rows; the leading rank sends no logits.
    """
    assert sent_for_a_tile(pair) == formula(cuttable, ranks=2)


@pytest.mark.long("ranks")
def test_eight_ranks_say_what_one_says_and_send_what_the_formula_says(cuttable: Path) -> None:
    whole = run_to_end(Engine(with_config(), cuttable), make_adds())
    with opened(cuttable, 8, rank_timeout_s=60.0) as group:
        assert group.ready().kernel == "torch-float32-tp8"
        assert group.run(make_adds()) == whole
        assert sent_for_a_tile(group) == formula(cuttable, ranks=8)


def sent_for_a_tile(group: Group) -> int:
    """Bytes that the leading rank sends for a prompt of 8."""
    before = group.last.sent_bytes
    group.run([make_add(prompt=[200 + index for index in range(8)], max_tokens=1, ignore_eos=True)])
    return group.last.sent_bytes - before


def formula(folder: Path, *, ranks: int) -> float:
    """What docs/gpu.md says of all-reduces: 2 (n - 1) / n of each one's numbers, of 4 bytes."""
    architecture = read_architecture(folder)
    return 2 * (ranks - 1) / ranks * (2 * architecture.num_layers + 1) * 8 * architecture.hidden_size * 4


@pytest.mark.model
@pytest.mark.long("ranks")
def test_three_ranks_of_the_default_model_say_what_one_says(default_model: Path) -> None:
    assert json.loads((default_model / "config.json").read_text())["num_attention_heads"] == 9
    add = make_add(prompt=[1, 4093, 198, 1780, 314, 260, 3575, 282, 4649, 47, 2, 198], max_tokens=6)
    changes = {"block_size": 16, "kv_memory_bytes": 64 << 20, "threads": 0}
    whole = run_to_end(Engine(with_config(**changes), default_model), [add])
    with opened(default_model, 3, **changes) as group:
        assert group.ready().kernel == "torch-float32-tp3"
        assert group.run([add]) == whole
