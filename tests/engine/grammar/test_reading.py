"""The vocabulary is read once, in a thread: steps run meanwhile, and an idle engine reads it before it is needed."""

import threading
from collections.abc import Callable
from typing import Any

from axon.engine import process
from axon.engine.core import EngineCore
from axon.engine.grammar.grammars import Grammars
from axon.engine.grammar.vocabulary import Vocabulary
from axon.engine.protocol.messages import Abort
from axon.engine.recording import Recordings
from tests.engine.builders import make_add, make_scheduler
from tests.engine.grammar.builders import MadeUpModel, of_regex, pieces, run, text_of, tokens

WAIT_S = 60.0


class Reading:
    """A vocabulary that takes until it is released to read."""

    def __init__(self) -> None:
        self.begun, self.release = threading.Event(), threading.Event()
        self.threads: list[threading.Thread] = []

    def __call__(self) -> Vocabulary:
        self.threads.append(threading.current_thread())
        self.begun.set()
        assert self.release.wait(WAIT_S)
        return pieces()


def make_core(read: Callable[[], Vocabulary], *, dear: bool = True) -> EngineCore:
    return EngineCore(
        make_scheduler(blocks=400, max_batch_tokens=64),
        MadeUpModel(4),
        kernel="made up",
        open_grammars=lambda: Grammars(read),
        grammars_are_dear=dear,
    )


def test_steps_run_while_the_vocabulary_is_read() -> None:
    reading = Reading()
    core = make_core(reading)
    core.add(make_add("free", prompt=3, max_tokens=40, ignore_eos=True))
    core.add(make_add("bound", prompt=5, grammar=of_regex("ab")))
    assert reading.begun.wait(WAIT_S)
    emitted = [each for _ in range(20) for each in core.step().emitted]
    assert len(emitted) > 10
    assert {each.id for each in emitted} == {"free"}
    reading.release.set()
    rest: list[Any] = []
    while core.has_work:
        rest += core.step().emitted
    assert text_of([each.token for each in rest if each.id == "bound"]) == "ab"
    assert reading.threads[0] is not threading.current_thread()
    core.close()


def test_an_idle_engine_reads_the_vocabulary_once_and_before_its_first_grammar() -> None:
    reading = Reading()
    core = make_core(reading)
    core.prepare()
    core.prepare()
    assert reading.begun.wait(WAIT_S)
    assert not core.has_work
    reading.release.set()
    emitted, _ = run(core, [make_add(grammar=of_regex("ab"))])
    assert text_of(tokens(emitted["a"])) == "ab"
    assert len(reading.threads) == 1


def test_an_engine_whose_vocabulary_costs_nothing_reads_it_when_it_is_needed() -> None:
    reading = Reading()
    core = make_core(reading, dear=False)
    core.prepare()
    core.close()
    assert not reading.begun.is_set()


def test_the_process_prepares_after_an_idle_second_and_not_before() -> None:
    done: list[str] = []
    work = [Abort(ids=[])]

    class Idle:
        has_work = False
        rest_s = None

        def tend(self) -> bool:
            return False

        def check(self) -> None:
            done.append("check")

        def prepare(self) -> None:
            done.append("prepare")

    class Quiet:
        """A channel on which nothing comes within a deadline."""

        def __init__(self, *, is_quiet: bool) -> None:
            self._is_quiet = is_quiet

        def receive(self, timeout_s: float | None) -> list[Any]:
            return [] if self._is_quiet and timeout_s is not None else work

    engine: Any = Idle()
    busy: Any = Quiet(is_quiet=False)
    quiet: Any = Quiet(is_quiet=True)
    assert process._receive_work(busy, engine, Recordings()) == work
    assert done == []
    assert process._receive_work(quiet, engine, Recordings()) == work
    assert done == ["check", "prepare"]
