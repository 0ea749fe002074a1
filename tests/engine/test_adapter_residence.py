"""Which adapters are in an engine's memory: bounded, none dropped that a sequence needs, nobody kept out for ever."""

from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from axon.engine.adapters import Adapters, to_drop
from axon.engine.protocol.messages import Add
from axon.errors import Misconfigured
from tests.engine.builders import make_add

MOST, MOST_BYTES = 3, 100


class Host:
    """Holds names; an adapter's folder is named by its bytes, or ``bad``."""

    def __init__(self) -> None:
        self.held: set[str] = set()

    def read(self, folder: Path) -> tuple[Any, int]:
        if folder.name == "bad":
            raise Misconfigured("it is broken")
        return folder, int(folder.name)

    def hold(self, digest: str, adapter: Any) -> None:
        assert digest not in self.held
        self.held.add(digest)

    def drop(self, digest: str) -> None:
        self.held.remove(digest)


def add_of(id: str, digest: str, size: int | str) -> Add:
    return make_add(id, adapter=digest, adapter_folder=f"/{size}")


SIZES: dict[str, int | str] = {"a": 10, "b": 40, "c": 40, "d": 90, "e": 1, "f": 100, "large": 101, "broken": "bad"}
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.sampled_from(sorted(SIZES))),
        st.tuples(st.just("end"), st.integers(0, 9)),
        st.tuples(st.just("abort"), st.integers(0, 9)),
        st.tuples(st.just("take"), st.just(0)),
    ),
    max_size=40,
)


@settings(deadline=None, max_examples=150)
@given(STEPS)
def test_bounds_hold_and_everybody_is_served_or_refused(steps: list[tuple[str, Any]]) -> None:
    host = Host()
    adapters = Adapters(host, most=MOST, most_bytes=MOST_BYTES)
    running: dict[str, str] = {}
    asked: dict[str, str] = {}
    refused: set[str] = set()

    def take() -> None:
        for add, refusal in adapters.take(set(running.values()), may_wait=True):
            if refusal is not None:
                refused.add(add.id)
            else:
                running[add.id] = add.adapter
        adapters.check()
        assert set(running.values()) <= host.held, "a sequence's adapter was dropped"
        assert len(host.held) == adapters.num_resident

    for number, (what, which) in enumerate(steps):
        match what:
            case "ask":
                asked[str(number)] = which
                adapters.submit(add_of(str(number), which, SIZES[which]))
            case "end" if running:
                del running[sorted(running)[which % len(running)]]
            case "abort" if adapters.pending_ids:
                gone = adapters.pending_ids[which % len(adapters.pending_ids)]
                adapters.drop([gone])
                del asked[gone]
            case _:
                take()
    for _ in range(10 * len(steps) + 10):
        take()
        if not adapters.pending_ids:
            break
        if running:
            del running[sorted(running)[0]]
    assert not adapters.pending_ids, "a sequence waits for ever"
    assert refused == {id for id, which in asked.items() if which in ("large", "broken")}
    adapters.close()


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 60), max_size=MOST),
    st.sets(st.sampled_from("abcdef")),
    st.integers(1, 100),
)
def test_only_what_nobody_needs_gives_way_and_no_more_than_must(
    resident: dict[str, int], in_use: set[str], num_bytes: int
) -> None:
    dropped = to_drop(resident, num_bytes, in_use, most=MOST, most_bytes=MOST_BYTES)
    idle = [digest for digest in resident if digest not in in_use]
    if dropped is None:
        needed = {digest: size for digest, size in resident.items() if digest in in_use}
        assert len(needed) >= MOST or sum(needed.values()) + num_bytes > MOST_BYTES
        return
    assert dropped == idle[: len(dropped)], "the least recently used go first"
    for kept_back in (dropped, dropped[:-1]):
        left = {digest: size for digest, size in resident.items() if digest not in kept_back}
        fits = len(left) < MOST and sum(left.values()) + num_bytes <= MOST_BYTES
        assert fits == (kept_back == dropped)


def test_a_popular_adapter_does_not_keep_another_one_out() -> None:
    adapters = Adapters(Host(), most=1, most_bytes=MOST_BYTES)
    adapters.submit(add_of("first", "a", 10))
    taken: list[str] = []
    while not taken:
        taken = [add.id for add, _ in adapters.take(set(), may_wait=True)]
    adapters.submit(add_of("other", "b", 10))
    for _ in range(20):  # until it is read
        assert adapters.take({"a"}, may_wait=True) == []
    adapters.submit(add_of("second", "a", 10))
    assert adapters.take({"a"}, may_wait=True) == []
    assert [add.id for add, _ in adapters.take(set(), may_wait=True)] == ["other"]
    adapters.close()
