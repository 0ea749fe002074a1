"""The real default model: converted once, answering, and its rows its own."""

import json
from pathlib import Path

import pytest

from axon.engine.config import EngineConfig
from axon.engine.convert import convert_gguf, default_gguf, is_converted
from axon.engine.engine import Engine
from axon.text.chat import ChatEncoder
from axon.text.template import load_template, require_template
from axon.text.tokenizer import Tokenizer, load_tokenizer
from tests.engine.builders import make_add, run_to_end
from tests.engine.reference.prompts import NUM_TOKENS, make_prompts

pytestmark = pytest.mark.model

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


@pytest.fixture(scope="session")
def engine(model_dir: Path) -> Engine:
    return Engine(EngineConfig(dtype="float32", kv_memory_bytes=256 << 20), model_dir)


def test_it_knows_the_capital_of_france(engine: Engine, chat: ChatEncoder, tokenizer: Tokenizer) -> None:
    prompt = chat.encode([{"role": "user", "content": "What is the capital of France?"}])
    tokens = run_to_end(engine, [make_add(prompt=prompt, max_tokens=24)])["a"]
    assert tokenizer.decode(tokens) == "The capital of France is Paris."
    assert tokens[-1] in tokenizer.eos_ids


def test_eight_streams_say_what_each_says_alone(engine: Engine, chat: ChatEncoder) -> None:
    prompts = [chat.encode([{"role": "user", "content": f"Tell me about the number {n}."}]) for n in range(8)]
    adds = [
        make_add(str(n), prompt=prompt, max_tokens=16, ignore_eos=True, tenant="together")
        for n, prompt in enumerate(prompts)
    ]
    together = run_to_end(engine, adds)
    for n in (0, 3, 7):
        alone = make_add(str(n), prompt=prompts[n], max_tokens=16, ignore_eos=True, tenant=f"alone {n}")
        assert run_to_end(engine, [alone])[str(n)] == together[str(n)]


def test_greedy_tokens_equal_those_of_transformers(engine: Engine, tokenizer: Tokenizer) -> None:
    """A handful of the reference; ``tests/engine/reference/check_default_model.py`` compares all of it."""
    prompts = make_prompts(lambda text: tokenizer.encode(text, parse_special=True))
    answers = json.loads((Path(__file__).parent / "reference" / "default_model.json").read_text())["answers"]
    assert len(answers) == len(prompts) >= 30
    adds = [
        make_add(str(index), prompt=prompts[index], max_tokens=NUM_TOKENS, ignore_eos=True)
        for index in (0, 2, 3, 8, 15, 24, 30)
    ]
    for id, tokens in run_to_end(engine, adds).items():
        assert tokens == answers[int(id)], f"prompt {id}"


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
