"""The real default model: converted once, answering, and its rows its own."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from llguidance import LLMatcher, LLTokenizer

from axon.engine.config import EngineConfig
from axon.engine.engine import Engine
from axon.engine.grammar.vocabulary import read_vocabulary
from axon.engine.load.convert.gguf import convert_gguf, default_gguf, is_converted
from axon.engine.load.head_folder import DEFAULT_HEAD
from axon.engine.protocol.messages import Add, Emitted
from axon.engine.schedule.limits.controller import FixedController, StepLimits
from axon.text.chat import ChatEncoder
from axon.text.template import load_template, require_template
from axon.text.tokenizer import Tokenizer, load_tokenizer
from tests.engine.builders import FREE_DRAFTS, make_add, open_engine, require_native, run_exactly, run_to_end
from tests.engine.grammar.builders import of_schema
from tests.engine.reference.prompts import NUM_TOKENS, make_prompts
from tests.long import whole

pytestmark = pytest.mark.model

FLOAT32 = EngineConfig(
    dtype="float32",
    kv_memory_bytes=512 << 20,
    threads=1,  # the tests of the other core are busy too
    max_prefill_tokens=512,
    max_slowdown=1000.0,  # nobody reads these streams: large chunks are quicker
)
INT8 = EngineConfig(dtype="int8", kv_memory_bytes=64 << 20)
SAMPLINGS: list[dict[str, Any]] = [
    {"temperature": 0.0},
    {"temperature": 0.0, "logprobs": 5},
    {"temperature": 0.9, "top_p": 0.95, "logprobs": 0},
]
"""Greedy by the kernels' own argmax, greedy by all logits, and seeded."""

MakeEngine = Callable[..., Engine]

NUM_PARTS = 10
"""Of the comparison with transformers: a short run does one of them."""

MODEL_DIR = Path(__file__).parents[2] / ".cache" / "models" / "smollm2-135m-instruct"


@pytest.fixture(scope="session")
def model_dir() -> Path:
    source = default_gguf()
    if not is_converted(source, MODEL_DIR):
        MODEL_DIR.parent.mkdir(parents=True, exist_ok=True)
        convert_gguf(source, MODEL_DIR)
    return MODEL_DIR


@pytest.fixture(scope="session")
def tokenizer(model_dir: Path) -> Tokenizer:
    return load_tokenizer(model_dir)


@pytest.fixture(scope="session")
def chat(model_dir: Path, tokenizer: Tokenizer) -> ChatEncoder:
    return ChatEncoder(tokenizer, require_template(load_template(model_dir)))


@pytest.fixture(scope="module")
def engine(model_dir: Path) -> Engine:
    return open_engine(model_dir, FLOAT32)


@pytest.fixture(scope="module")
def prompts(tokenizer: Tokenizer) -> list[list[int]]:
    """Text in several languages, code, and lengths from 1 to 2,000."""
    return make_prompts(lambda text: tokenizer.encode(text, parse_special=True))


@pytest.mark.long("float32")
def test_it_knows_the_capital_of_france(engine: Engine, chat: ChatEncoder, tokenizer: Tokenizer) -> None:
    prompt = chat.encode([{"role": "user", "content": "What is the capital of France?"}])
    tokens = run_to_end(engine, [make_add(prompt=prompt, max_tokens=24)])["a"]
    assert tokenizer.decode(tokens) == "The capital of France is Paris."
    assert tokens[-1] in tokenizer.eos_ids


@pytest.mark.long("float32")
def test_eight_streams_say_what_each_says_alone(engine: Engine, chat: ChatEncoder) -> None:
    check_eight_streams(engine, chat)


def test_eight_streams_say_what_each_says_alone_as_it_is_shipped(make_int8: MakeEngine, chat: ChatEncoder) -> None:
    check_eight_streams(make_int8(), chat)


def check_eight_streams(engine: Engine, chat: ChatEncoder) -> None:
    prompts = [chat.encode([{"role": "user", "content": f"Tell me about the number {n}."}]) for n in range(8)]
    adds = [
        make_add(str(n), prompt=prompt, max_tokens=10, ignore_eos=True, tenant="together")
        for n, prompt in enumerate(prompts)
    ]
    together = run_to_end(engine, adds)
    for n in (0, 7):
        alone = make_add(str(n), prompt=prompts[n], max_tokens=10, ignore_eos=True, tenant=f"alone {n}")
        assert run_to_end(engine, [alone])[str(n)] == together[str(n)]


SCHEMAS: list[dict[str, Any]] = [
    {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0}},
        "required": ["name", "age"],
        "additionalProperties": False,
    },
    {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "minItems": 1, "maxItems": 4},
    {"anyOf": [{"type": "boolean"}, {"type": "string", "pattern": "^[A-Z][a-z]{2,8}$"}]},
    {"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {
        "value": {"type": "integer", "minimum": 0, "maximum": 9},
        "next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]},
    }, "required": ["value", "next"], "additionalProperties": False}}},
]  # fmt: skip


def test_the_vocabulary_that_is_read_in_pieces_is_the_one_that_is_read_at_once(model_dir: Path) -> None:
    whole = LLTokenizer(str(model_dir / "tokenizer.json"), n_vocab=49_152, eos_token=[0, 2])
    read = read_vocabulary(model_dir, size=49_152, eos_ids=(2, 0)).tokenizer
    assert (read.vocab_size, read.eos_tokens, read.is_canonical) == (49_152, whole.eos_tokens, whole.is_canonical)
    grammar = of_schema({"type": "string"})
    masks = [LLMatcher(each, grammar).compute_bitmask() for each in (whole, read)]
    assert masks[0] == masks[1]


def test_answers_follow_their_schemas_with_drafts_and_without(
    model_dir: Path, chat: ChatEncoder, tokenizer: Tokenizer
) -> None:
    require_native()
    prompt = chat.encode([{"role": "user", "content": "Answer in JSON."}])
    adds = [
        make_add(f"{n}.{seed}", prompt=prompt, max_tokens=80, seed=seed, temperature=1.0, grammar=of_schema(schema))
        for n, schema in enumerate(SCHEMAS)
        for seed in range(3)
    ]
    outputs = run_to_end(open_engine(model_dir, INT8), adds)
    num_ended = 0
    for id, tokens in outputs.items():
        if tokens[-1] in tokenizer.eos_ids:
            jsonschema.validate(json.loads(tokenizer.decode(tokens)), SCHEMAS[int(id[0])])
            num_ended += 1
    assert num_ended > len(adds) / 2
    assert run_to_end(open_engine(model_dir, INT8, speculate=False), adds[::4]) == {
        add.id: outputs[add.id] for add in adds[::4]
    }


@pytest.mark.long("float32")
@pytest.mark.timeout(600)  # minutes on a busy machine
@pytest.mark.parametrize("part", range(NUM_PARTS))
def test_greedy_tokens_equal_those_of_transformers(part: int, engine: Engine, prompts: list[list[int]]) -> None:
    """Of five long prompts, ``tests/engine/reference/check_default_model.py`` tells; they take as long as the rest."""
    answers = json.loads((Path(__file__).parent / "reference" / "default_model.json").read_text())["answers"]
    compared = [index for index, prompt in enumerate(prompts) if len(prompt) not in (513, 700, 900, 1200, 1600)]
    assert len(answers) == len(prompts)
    assert len(compared) >= 30
    assert max(len(prompts[index]) for index in compared) == 2000
    adds = [
        make_add(str(index), prompt=prompts[index], max_tokens=NUM_TOKENS, ignore_eos=True)
        for index in compared[part::NUM_PARTS]
    ]
    for id, tokens in run_to_end(engine, adds).items():
        assert tokens == answers[int(id)], f"prompt {id} of {len(prompts[int(id)])} tokens"


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(6))
def test_greedy_tokens_with_its_draft_head_are_those_without(
    part: int, model_dir: Path, prompts: list[list[int]]
) -> None:
    """Thirty prompts in six parts, of which a short run does one, and less of it."""
    require_native()
    short = [prompt for prompt in prompts if len(prompt) <= 200][:30]
    assert len(short) == 30
    num_tokens = NUM_TOKENS if whole() else NUM_TOKENS // 2
    adds = [
        make_add(str(index), prompt=prompt, max_tokens=num_tokens, ignore_eos=True)
        for index, prompt in enumerate(short[part::6])
    ]
    engine = open_engine(model_dir, INT8, draft_model=str(DEFAULT_HEAD))
    limits = StepLimits(max_prefill_tokens=INT8.max_prefill_tokens or 512, draft_costs=FREE_DRAFTS)
    engine._controller = FixedController(limits)  # it drafts whenever it can, whatever that costs here
    assert run_exactly(engine, adds) == run_exactly(open_engine(model_dir, INT8, speculate=False), adds)
    counters = engine.step().counters
    assert counters.model_drafted / 10 < counters.model_accepted < counters.model_drafted


@pytest.fixture(scope="module")
def make_int8(model_dir: Path) -> MakeEngine:
    require_native()
    return lambda **changes: open_engine(model_dir, INT8, **changes)


@pytest.fixture(scope="class")
def alone(make_int8: MakeEngine, prompts: list[list[int]], sampling: dict[str, Any]) -> dict[str, list[Emitted]]:
    """Each by itself and at once, with nothing cached."""
    engine = make_int8(max_batch_tokens=2048)
    return {add.id: run_exactly(engine, [add])[add.id] for add in make_adds(prompts, sampling, apart=True)}


@pytest.fixture(scope="class")
def adds(prompts: list[list[int]], sampling: dict[str, Any]) -> list[Add]:
    return make_adds(prompts, sampling)


@pytest.mark.long("int8")
@pytest.mark.parametrize("sampling", SAMPLINGS, ids=str, scope="class")
class TestInt8:
    """What is shipped: whatever happens around a sequence, its tokens and logprobs stay the same to the last bit."""

    def test_batched_equals_alone(
        self, make_int8: MakeEngine, adds: list[Add], alone: dict[str, list[Emitted]]
    ) -> None:
        assert run_exactly(make_int8(), adds) == alone

    def test_chunked_and_cached_equal_whole_and_uncached(
        self, make_int8: MakeEngine, adds: list[Add], alone: dict[str, list[Emitted]]
    ) -> None:
        engine = make_int8(max_batch_tokens=23)
        assert run_exactly(engine, adds) == alone
        assert engine.step().counters.blocks_cached > 0
        assert run_exactly(engine, adds) == alone

    def test_parked_and_resumed_equals_undisturbed(
        self, make_int8: MakeEngine, adds: list[Add], alone: dict[str, list[Emitted]]
    ) -> None:
        block_bytes = INT8.kv_memory_bytes // make_int8().ready().num_blocks
        tight = make_int8(kv_memory_bytes=block_bytes * 22)
        assert run_exactly(tight, adds) == alone
        assert tight.step().counters.preemptions > 0

    def test_replayed_equals_undisturbed(
        self, make_int8: MakeEngine, adds: list[Add], alone: dict[str, list[Emitted]]
    ) -> None:
        engine = make_int8()
        for add in adds:
            num_emitted = 1 + 7 * int(add.id)
            emitted = [each.token for each in alone[add.id][:num_emitted]]
            replay = replace(add, output_ids=emitted, tenant="replay")
            assert run_exactly(engine, [replay])[add.id] == alone[add.id][num_emitted:]

    def test_four_choices_equal_each_alone(
        self, make_int8: MakeEngine, prompts: list[list[int]], sampling: dict[str, Any]
    ) -> None:
        choices = [
            make_add(str(n), prompt=prompts[3], choice=n, seed=5, max_tokens=16, ignore_eos=True, **sampling)
            for n in range(4)
        ]
        engine, other = make_int8(), make_int8()
        together = run_exactly(engine, choices)
        assert {each.id: run_exactly(other, [replace(each, tenant=each.id)])[each.id] for each in choices} == together


def make_adds(prompts: list[list[int]], sampling: dict[str, Any], *, apart: bool = False) -> list[Add]:
    """Five prompts of 8 to 130 tokens, each with a seed of its own; those kept apart share no cached block."""
    return [
        make_add(
            str(number),
            prompt=prompts[index],
            max_tokens=40,
            seed=number,
            tenant=str(number) if apart else "",
            ignore_eos=True,
            **sampling,
        )
        for number, index in enumerate((0, 2, 8, 19, 29))
    ]


def test_its_tokenizer_gives_the_ids_the_model_was_trained_on(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("Hello world") == [19556, 905]
    assert len(tokenizer.encode("2024")) == 4, "digits stand alone"
    assert tokenizer.encode("<|im_start|>user", parse_special=True) == [1, 4093]
    assert tokenizer.decode(tokenizer.encode("naïve café 🚀\n\tx")) == "naïve café 🚀\n\tx"


def test_a_half_conversion_is_not_taken_for_a_whole_one(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert not is_converted(default_gguf(), tmp_path)


def test_it_knows_the_capital_of_france_in_the_arithmetic_that_is_chosen_by_default(
    model_dir: Path, chat: ChatEncoder, tokenizer: Tokenizer
) -> None:
    prompt = chat.encode([{"role": "user", "content": "What is the capital of France?"}])
    engine = Engine(EngineConfig(kv_memory_bytes=64 << 20), model_dir)
    assert tokenizer.decode(run_to_end(engine, [make_add(prompt=prompt, max_tokens=24)])["a"]) == (
        "The capital of France is Paris."
    )
