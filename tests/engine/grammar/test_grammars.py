"""A grammar that cannot be used costs its sender a refusal and nobody else anything; compiled ones are bounded."""

import threading
from pathlib import Path

import pytest
from llguidance import LLMatcher

import axon.engine.grammar.grammars as grammars_module
from axon.domain.failure import Failure
from axon.domain.grammar import ParserLimits
from axon.engine.core import EngineCore
from axon.engine.grammar.compiled import CompiledCache
from axon.engine.grammar.grammars import MAX_TEXT_BYTES, Grammars
from axon.engine.grammar.vocabulary import Vocabulary, byte_vocabulary, read_vocabulary
from axon.errors import Misconfigured
from tests.engine.builders import make_add, make_scheduler
from tests.engine.grammar.builders import MadeUpModel, make_core, of_regex, of_schema, pieces, run, text_of, tokens


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "EOF while parsing"),
        ("start: nope", "unknown name"),
        (of_regex("["), "regex parse error"),
        (of_schema({"type": "zork"}), "Invalid type"),
        ("x" * (MAX_TEXT_BYTES + 1), "more than"),
    ],
)
def test_a_grammar_that_does_not_compile_is_refused_and_others_run_on(text: str, problem: str) -> None:
    adds = [make_add("bad", grammar=text), make_add("good", grammar=of_regex("ab"), prompt=3)]
    emitted, refused = run(make_core(), adds)
    assert list(refused) == ["bad"]
    assert refused["bad"].code == Failure.INVALID
    assert problem in refused["bad"].message
    assert "<state>" not in refused["bad"].message
    assert text_of(tokens(emitted["good"])) == "ab"


def test_a_grammar_that_becomes_too_much_ends_its_choice_with_a_reason() -> None:
    scheduler = make_scheduler(blocks=400, max_batch_tokens=64)
    grammars = Grammars(pieces, limits=ParserLimits(max_lexer_states=60))
    core = EngineCore(scheduler, MadeUpModel(4, b"abc"), kernel="made up", open_grammars=lambda: grammars)
    adds = [make_add("much", grammar=of_regex("[a-c]*(ab|b[a-c]{9}c)[a-c]{80}x"), max_tokens=300, temperature=1.0)]
    adds.append(make_add("little", grammar=of_regex("[a-c]{9}")))
    emitted, refused = run(core, adds)
    assert list(refused) == ["much"]
    assert "The grammar cannot be" in refused["much"].message
    assert emitted["little"][-1].finish == "length"


def test_a_replay_that_does_not_follow_its_grammar_is_refused() -> None:
    _, refused = run(make_core(), [make_add(grammar=of_regex("ab"), output=[ord("x")])])
    assert "do not follow" in refused["a"].message


def test_an_engine_without_grammars_refuses_them() -> None:
    scheduler = make_scheduler()
    _, refused = run(EngineCore(scheduler, MadeUpModel(4), kernel="made up"), [make_add(grammar=of_regex("a"))])
    assert refused["a"].code == Failure.INVALID


def test_a_grammar_that_takes_too_long_does_not_hold_up_those_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    compile_text = Grammars._compile

    def compile_slowly(self: Grammars, text: str, vocabulary: Vocabulary) -> LLMatcher:
        if text == "slow":
            release.wait(60)
        return compile_text(self, text, vocabulary)

    monkeypatch.setattr(Grammars, "_compile", compile_slowly)
    monkeypatch.setattr(grammars_module, "_TIMEOUT_S", 0.1)
    adds = [make_add("slow", grammar="slow"), make_add("quick", grammar=of_regex("ab"), prompt=3)]
    try:
        emitted, refused = run(make_core(), adds)
    finally:
        release.set()
    assert list(refused) == ["slow"]
    assert "to compile" in refused["slow"].message
    assert text_of(tokens(emitted["quick"])) == "ab"


@pytest.mark.parametrize(
    "text",
    [
        of_regex("(" * 20_000 + "a" + ")" * 20_000),
        "start: " + "(" * 20_000 + '"a"' + ")" * 20_000,
        '{"grammars":[{"json_schema":' + '{"items":' * 20_000 + "{}" + "}" * 20_000 + "}]}",
        of_schema({"$ref": "#"}),
    ],
    ids=["regex", "lark", "schema", "itself"],
)
def test_a_grammar_nested_without_end_is_refused_and_crashes_nothing(text: str) -> None:
    _, refused = run(make_core(), [make_add(grammar=text)])
    assert refused["a"].code == Failure.INVALID


def test_a_sequence_is_aborted_while_its_grammar_is_compiled() -> None:
    core = make_core()
    core.add(make_add(grammar=of_regex("a")))
    core.abort(["a"])
    assert not core.has_work
    core.close()


def test_those_that_wait_for_their_grammar_are_said_to_wait() -> None:
    core = make_core()
    core.add(make_add("free", prompt=3, max_tokens=50))
    core.step()
    notes: list[list[str]] = []
    core.note_steps(lambda ids: notes.append(list(ids)))
    core.add(make_add("bound", grammar=of_regex("a")))
    core.step()
    assert any("bound" in ids for ids in notes), "a crash of the compiler is blamed on the sequence"
    core.close()


def test_a_folder_without_a_tokenizer_refuses_grammars_by_name(tmp_path: Path) -> None:
    def read() -> Vocabulary:
        return read_vocabulary(tmp_path, size=10, eos_ids=())

    with pytest.raises(Misconfigured, match="tokenizer"):
        read()
    core = EngineCore(make_scheduler(), MadeUpModel(4), kernel="made up", open_grammars=lambda: Grammars(read))
    _, refused = run(core, [make_add(grammar=of_regex("a"))])
    assert "tokenizer.json" in refused["a"].message


def test_a_mask_is_as_wide_as_the_logits() -> None:
    assert byte_vocabulary(size=272, eos_id=257).num_words == 9
    assert byte_vocabulary(size=272, eos_id=257).eos_ids == {257}


def test_the_cache_keeps_the_ones_used_last_within_its_bounds() -> None:
    cache: CompiledCache[int] = CompiledCache(max_entries=2, max_bytes=10)
    cache.put("aa", 1)
    cache.put("bb", 2)
    assert cache.get("aa") == 1
    cache.put("cc", 3)
    assert [cache.get(text) for text in ("aa", "bb", "cc")] == [1, None, 3]
    cache.put("d" * 9, 4)
    assert (len(cache), cache.num_bytes) == (1, 9)
    cache.put("e" * 11, 5)
    assert (len(cache), cache.num_bytes) == (0, 0)


def test_a_grammar_is_compiled_once_for_all_its_sequences() -> None:
    core = make_core()
    run(core, [make_add(str(n), prompt=3, grammar=of_regex("ab")) for n in range(5)])
    grammars = core._grammars
    assert isinstance(grammars, Grammars)
    assert len(grammars.cache) == 1
