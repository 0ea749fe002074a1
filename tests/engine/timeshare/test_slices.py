"""Engines in threads take slices: never two at once, each gets its part, and none is stopped by one that hangs."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from axon.engine.timeshare import slices as module
from axon.engine.timeshare.board import Board
from axon.engine.timeshare.order import State
from axon.engine.timeshare.slices import TimeSlices, WholeTime, join_cores


class Clock:
    """Time that passes only when an engine computes."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def joined(folder: Path, weight: float = 1.0, clock: Callable[[], float] | None = None) -> Iterator[TimeSlices]:
    board = Board(folder)
    board.open()
    slices = TimeSlices(board, weight, clock) if clock else TimeSlices(board, weight)
    try:
        yield slices
    finally:
        slices.close()


class Cores:
    """Counts who computes; two at once are an error."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self.computed: list[str] = []
        self.errors: list[str] = []

    def compute(self, name: str, seconds: float) -> None:
        if not self._lock.acquire(blocking=False):
            self.errors.append(f"{name} beside another")
            return
        self.computed.append(name)
        self._clock.now += seconds
        self._lock.release()


def test_a_stream_and_a_flood_alternate_and_never_compute_at_once(tmp_path: Path) -> None:
    clock = Clock()
    cores, done = Cores(clock), threading.Event()

    def chat(slices: TimeSlices) -> None:
        for _ in range(40):
            with slices.slice():
                cores.compute("chat", 0.006)
        done.set()
        slices.rest()

    with joined(tmp_path / "cores", 1.0, clock) as one, joined(tmp_path / "cores", 0.5, clock) as other:
        thread = threading.Thread(target=chat, args=(one,))
        with other.slice():
            thread.start()
            while not done.is_set():
                _until_waits(one, done)
                cores.compute("flood", 0.002)
                other.offer()
        thread.join(60)
        assert not cores.errors
        runs = _runs_of("flood", cores.computed)
        assert len(runs) > 30
        # A step of 6 ms is worth 3 ms of the flood, at half the weight: one piece of 2 ms or two between two tokens.
        assert set(runs) <= {1, 2}
        assert sum(runs) / len(runs) == pytest.approx(1.5, abs=0.2)


def _until_waits(slices: TimeSlices, done: threading.Event) -> None:
    """Returns when the engine waits for its next slice, or has ended."""
    slot = slices._board.slot
    while not done.is_set() and not any(
        each.slot == slot and each.state is State.WAITING for each in slices._board.read()
    ):
        done.wait(0.0002)


def _runs_of(name: str, computed: list[str]) -> list[int]:
    """The lengths of the runs of ``name`` between two others."""
    words = "".join("x" if each == name else "|" for each in computed)
    return [len(run) for run in words.split("|")[1:-1] if run]


def test_alone_an_engine_never_waits_and_never_passes_on(tmp_path: Path) -> None:
    with joined(tmp_path / "cores") as slices:
        for _ in range(100):
            with slices.slice():
                slices.offer()
        assert slices.away_s == 0.0


class Waits:
    """Counts the waits of an engine, which are short."""

    def __init__(self, slices: TimeSlices, monkeypatch: pytest.MonkeyPatch) -> None:
        self.num = 0
        self._wait = slices._board.wait
        monkeypatch.setattr(module, "PATIENCE_S", 0.05)
        monkeypatch.setattr(slices._board, "wait", self._count)

    def _count(self, timeout_s: float) -> bool:
        self.num += 1
        return self._wait(timeout_s)


def take(slices: TimeSlices, times: int = 1) -> None:
    for _ in range(times):
        with slices.slice():
            pass


def test_an_engine_waits_once_for_a_holder_that_hangs_and_then_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with joined(tmp_path / "cores") as hung, joined(tmp_path / "cores") as other, hung.slice():
        waits = Waits(other, monkeypatch)
        take(other)
        assert waits.num > 0
        waits.num = 0
        take(other, 20)
        other.rest()
        take(other)
        assert waits.num == 0
        assert caplog.text.count("did not move: [0]") == 1


def test_an_engine_waits_once_for_one_that_was_stopped_while_it_waited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with joined(tmp_path / "cores") as stopped, joined(tmp_path / "cores") as other:
        stopped._board.write(State.WAITING, -1.0)
        waits = Waits(other, monkeypatch)
        take(other)
        assert waits.num > 0
        waits.num = 0
        with other.slice():
            assert not stopped._board.try_hold()  # it has the slice, and not beside another
            other.offer()
        take(other, 20)
        assert waits.num == 0


@pytest.mark.parametrize("state", [State.WAITING, State.BETWEEN])
def test_an_engine_waits_once_for_one_that_was_stopped_with_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: State
) -> None:
    with joined(tmp_path / "cores") as stopped, joined(tmp_path / "cores") as other:
        assert stopped._board.try_hold()
        stopped._board.write(state, 5.0)
        waits = Waits(other, monkeypatch)
        take(other)
        assert waits.num > 0
        waits.num = 0
        take(other, 20)
        assert waits.num == 0


def test_beside_one_that_hangs_the_others_still_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)
    folder = tmp_path / "cores"
    with joined(folder) as hung, joined(folder) as one, joined(folder) as other, hung.slice():
        take(one)
        take(other)
        with one.slice():
            assert not other._try_take()
        assert other._try_take()


def test_one_that_hung_and_moves_again_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)
    with joined(tmp_path / "cores") as hung, joined(tmp_path / "cores") as other:
        with hung.slice():
            take(other)
            assert other._try_take()
        with hung.slice():
            assert not other._try_take()
        assert other._try_take()
        assert not hung._board.try_hold()  # by the lock again


def test_an_engine_that_starts_while_the_other_is_idle_for_a_moment_is_owed_nothing(tmp_path: Path) -> None:
    clock = Clock()
    with joined(tmp_path / "cores", 1.0, clock) as chat, joined(tmp_path / "cores", 0.5, clock) as flood:
        for _ in range(20):
            with chat.slice():
                clock.now += 0.5
        chat.rest()
        with flood.slice():
            clock.now += 0.01
        assert flood._claim.had_s > 9.0


def test_the_level_outlives_the_engines(tmp_path: Path) -> None:
    clock = Clock()
    with joined(tmp_path / "cores", 1.0, clock) as stays:
        with joined(tmp_path / "cores", 1.0, clock) as ends:
            for _ in range(20):
                with ends.slice():
                    clock.now += 0.5
        with stays.slice():
            pass
        assert stays._claim.had_s > 9.0


def test_an_offer_outside_a_turn_does_nothing(tmp_path: Path) -> None:
    with joined(tmp_path / "cores") as slices, joined(tmp_path / "cores") as other:
        other._board.write(State.WAITING, 0.0)
        slices.offer()
        assert [each.state for each in other._board.read()] == [State.WAITING]


def test_where_there_is_no_board_an_engine_computes_beside_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    slices = join_cores(1.0, tmp_path / "file")
    assert isinstance(slices, WholeTime)
    assert "does not share its cores" in caplog.text
    with slices.slice():
        slices.offer()


def test_engines_of_another_niceness_do_not_share_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = module.shared_folder()
    monkeypatch.setattr("os.nice", lambda more: 19)
    assert module.shared_folder() != mine
    assert module.shared_folder().parent == mine.parent
