"""Asks the default model for answers that follow grammars, many at once, and tells what came. Knows no schema."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from axon.domain.sampling import Sampling
from axon.engine.config import EngineConfig
from axon.engine.engine import Engine
from axon.engine.load.convert.gguf import convert_gguf, default_gguf, is_converted
from axon.engine.protocol.messages import Add
from axon.text.grammar import Grammar
from axon.text.tokenizer import load_tokenizer

PROMPTS = ("Give an example.", "Describe a city in one line.", "Which three things do you like most, and why?")
_ASK = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
_MODEL_DIR = Path(__file__).parents[2] / ".cache" / "models" / "smollm2-135m-instruct"
_CUT = "\ufffd"
"""What an answer ends with that was cut inside a character."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model said."""

    text: str
    is_finished: bool
    """Whether it ended by itself; otherwise it is the beginning of an answer."""


class Asker:
    """The default model at temperature 1."""

    def __init__(self) -> None:
        if not is_converted(default_gguf(), _MODEL_DIR):
            _MODEL_DIR.parent.mkdir(parents=True, exist_ok=True)
            convert_gguf(default_gguf(), _MODEL_DIR)
        self._tokenizer = load_tokenizer(_MODEL_DIR)
        self._engine = Engine(EngineConfig(kv_memory_bytes=256 << 20), _MODEL_DIR)

    def answers(self, grammars: Sequence[Grammar], *, max_tokens: int, prompts: Sequence[str]) -> list[list[Answer]]:
        """The answers to each grammar, one for each prompt. Fails if an engine refuses a grammar, or does not end."""
        ids = [self._tokenizer.encode(_ASK.format(prompt), parse_special=True) for prompt in prompts]
        adds = {
            f"{number}.{turn}": Add(
                id=f"{number}.{turn}",
                prompt_ids=prompt_ids,
                sampling=Sampling(max_tokens=max_tokens, temperature=1.0, grammar=grammar.after("")),
                seed=number,
            )
            for number, grammar in enumerate(grammars)
            for turn, prompt_ids in enumerate(ids)
        }
        found = self._run(adds, max_steps=(len(adds) + 1) * (max_tokens + 1000))
        return [[found[f"{number}.{turn}"] for turn in range(len(ids))] for number in range(len(grammars))]

    def _run(self, adds: dict[str, Add], max_steps: int) -> dict[str, Answer]:
        engine, tokens, finishes = self._engine, dict[str, list[int]](), dict[str, str]()
        for add in adds.values():
            engine.add(add)
        for _ in range(max_steps):
            if not engine.has_work:
                break
            output = engine.step()
            assert not output.refused, [(each.message, adds[each.id].sampling.grammar) for each in output.refused]
            for emitted in output.emitted:
                tokens.setdefault(emitted.id, []).append(emitted.token)
                if emitted.finish:
                    finishes[emitted.id] = emitted.finish
        assert not engine.has_work, "the engine does not come to an end"
        return {id: self._answer(tokens[id], finishes[id]) for id in adds}

    def _answer(self, tokens: list[int], finish: str) -> Answer:
        is_finished = finish == "stop"
        text = self._tokenizer.decode(tokens[:-1] if is_finished else tokens)
        return Answer(text if is_finished else text.rstrip(_CUT), is_finished)

    def close(self) -> None:
        """Ends the engine."""
        self._engine.close()
