"""The engine over a vLLM that says what the test wants."""

from types import SimpleNamespace
from typing import Any

from axon.engine.config import EngineConfig
from axon.engine.protocol.messages import StepOutput
from axon.engine.vllm.engine import VllmEngine
from tests.engine.builders import make_add


class Scripted:
    """vLLM whose every sequence emits the token 5, until the test says how it ends."""

    kernel, max_model_len, num_blocks, block_size, eos_ids = "scripted", 100, 10, 16, [2]
    refusals = (ValueError,)

    def __init__(self, max_sequences: int = 2) -> None:
        self.max_sequences, self.llm = max_sequences, self
        self.inside: dict[str, int] = {}
        """Priorities by id."""
        self.ends: dict[str, str] = {}
        self.followed: list[int] = []
        self.noted: list[list[str]] = []

    def sampling(self, arguments: dict[str, Any], grammar: str) -> Any:
        return grammar

    def follow(self, request_id: str, token_ids: list[int]) -> None:
        self.followed = token_ids
        if token_ids[0] == 99:
            raise ValueError("the tokens that were emitted before do not follow the grammar")

    def num_free_blocks(self) -> int:
        return self.num_blocks - len(self.inside)

    def close(self) -> None: ...

    def add_request(self, request_id: str, prompt: Any, params: Any, *, priority: int = 0) -> str:
        self.inside[request_id] = priority
        return request_id

    def abort_request(self, request_ids: list[str]) -> None:
        for id in request_ids:
            del self.inside[id]

    def step(self) -> list[Any]:
        outputs = []
        for id in list(self.inside):
            finish = self.ends.get(id)
            if finish:
                del self.inside[id]
            tokens = [] if finish == "error" else [5]
            completion = SimpleNamespace(token_ids=tokens, logprobs=None, finish_reason=finish)
            outputs.append(
                SimpleNamespace(request_id=id, outputs=[completion], prompt_logprobs=None, num_cached_tokens=0)
            )
        return outputs


def make(scripted: Scripted, now: float = 0.0) -> VllmEngine:
    engine = VllmEngine(EngineConfig(kind="vllm"), scripted, now=lambda: now)
    engine.note_steps(lambda ids: scripted.noted.append(list(ids)))
    return engine


def ids(output: StepOutput) -> list[str]:
    return [each.id for each in output.emitted]


def test_vllm_gets_no_more_than_it_has_slots_and_the_rest_is_named_as_waiting() -> None:
    engine = make(scripted := Scripted(max_sequences=2))
    for id in "abc":
        engine.add(make_add(id, max_tokens=9))
    output = engine.step()
    assert (ids(output), output.waiting) == (["a", "b"], ["c"])
    assert (output.counters.num_running, output.counters.num_waiting, output.counters.blocks_used) == (2, 1, 2)
    scripted.ends["a"] = "stop"
    engine.step()
    assert ids(engine.step()) == ["b", "c"]


def test_a_higher_number_is_a_lower_one_there() -> None:
    engine = make(scripted := Scripted())
    engine.add(make_add("a", priority=3))
    engine.step()
    assert scripted.inside == {"a": -3}


def test_what_was_aborted_is_gone_from_door_and_vllm_alike() -> None:
    engine = make(scripted := Scripted(max_sequences=1))
    engine.add(make_add("a", max_tokens=9))
    engine.add(make_add("b", max_tokens=9))
    engine.step()
    engine.abort(["a", "b", "nobody"])
    assert not scripted.inside
    assert not engine.has_work
    assert engine.step().counters.num_running == 0
    engine.check()


def test_a_deadline_ends_what_waits_and_what_runs() -> None:
    engine = make(scripted := Scripted(max_sequences=1), now=10.0)
    engine.add(make_add("runs", max_tokens=9))
    engine.step()
    engine.add(make_add("late", deadline=9.0))
    engine.add(make_add("timely", deadline=11.0))
    output = engine.step()
    assert [(each.id, each.code) for each in output.refused] == [("late", "deadline_exceeded")]
    assert output.waiting == ["timely"]
    assert scripted.inside.keys() == {"runs"}


def test_a_sequence_that_vllm_gives_up_is_refused_and_its_slot_free() -> None:
    engine = make(scripted := Scripted(max_sequences=1))
    engine.add(make_add("a", max_tokens=9))
    engine.add(make_add("b", max_tokens=9))
    scripted.ends["a"] = "error"
    assert [each.id for each in engine.step().refused] == ["a"]
    assert ids(engine.step()) == ["b"]
    engine.check()


def test_a_replay_goes_on_within_its_grammar_or_is_refused() -> None:
    engine = make(scripted := Scripted())
    engine.add(make_add("a", output=[7, 8], max_tokens=9, grammar="g"))
    engine.step()
    assert scripted.followed == [7, 8]
    engine.add(make_add("b", output=[99], max_tokens=9, grammar="g"))
    (refused,) = engine.step().refused
    assert "do not follow the grammar" in refused.message
    assert scripted.inside.keys() == {"a"}


def test_the_sequences_of_a_step_are_noted_before_it_and_none_behind_it() -> None:
    engine = make(scripted := Scripted())
    engine.add(make_add("a", max_tokens=9))
    engine.step()
    assert scripted.noted[-2:] == [["a"], []]


def test_the_same_id_begins_anew() -> None:
    engine = make(Scripted())
    engine.add(make_add("a", max_tokens=9))
    engine.step()
    engine.add(make_add("a", prompt=9, max_tokens=9))
    assert ids(engine.step()) == ["a"]
    engine.check()
