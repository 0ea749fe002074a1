"""Pins: one version for a session, the same for whoever asks, and a move only for a reason."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.moved import Moved
from axon.domain.registry.deployment import Deployment, Member, MemberState
from axon.domain.registry.version import Version
from axon.domain.session.pin import (
    Known,
    LastPin,
    Pin,
    Reason,
    Unheard,
    known_of,
    moved_to,
    next_pin,
    pin_key,
    pin_of,
    stored_pin,
)
from axon.domain.turn import Turn, opened
from tests.contracts.builders import make_job

KNOWN = Known(
    states={
        "small@v1": MemberState.READY,
        "small@v2": MemberState.DRAINING,
        "small@v3": MemberState.FAILED,
        "small@v4": MemberState.CLOSED,
    },
    absent_s={"small@v2": 61.0, "small@v1": 59.0},
    marks={"mark-1": "small@v1", "mark-3": "small@v3"},
    removed=frozenset({"small@v0", "other@v1"}),
    elsewhere=frozenset({"other@v1"}),
)


def turn(turn_id: str, generation: int, ordinal: int, at: float, version: str) -> Turn:
    return opened(make_job(turn_id, generation=generation, ordinal=ordinal, created=at, version=version))


turns = st.lists(
    st.builds(
        turn,
        st.uuids().map(str),
        st.integers(0, 2),
        st.integers(0, 2),
        st.sampled_from([1.0, 2.0]),
        st.sampled_from("xyz"),
    ),
    max_size=5,
)


@given(turns)
def test_the_highest_generation_wins_and_in_it_the_first_turn_in_whatever_order_they_are_read(said: list[Turn]) -> None:
    found = {pin_of(order) for order in itertools.permutations(said)}
    assert len(found) == 1
    [pin] = found
    if not said:
        assert pin is None
        return
    highest = max(turn.job.generation for turn in said)
    first = min(
        (turn.job.ordinal, turn.opened_at, turn.id, turn.job.version) for turn in said if turn.job.generation == highest
    )
    assert pin == Pin(highest, first[-1])


def test_a_key_is_a_digest_of_the_first_name_that_is_given() -> None:
    names = {"session": "conv_1", "session_header": "conv_1", "prompt_cache_key": "conv_1"}
    each = [pin_key("small", "acme", **{name: value}) for name, value in names.items()]
    assert len(set(each)) == 3
    assert pin_key("small", "acme", **names) == each[0]
    assert pin_key("small", "acme", session_header="conv_1", prompt_cache_key="x") == each[1]
    assert pin_key("small", "acme") == ""
    assert all("conv_1" not in key and "acme" not in key for key in each)


@given(st.lists(st.tuples(st.text(), st.text(), st.text(min_size=1)), min_size=2, max_size=2, unique=True))
def test_other_models_tenants_and_names_have_other_keys(named: list[tuple[str, str, str]]) -> None:
    keys = {pin_key(model, tenant, session_header=name) for model, tenant, name in named}
    assert len(keys) == 2


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("small@v1", None),
        ("small@v2", "no_worker"),
        ("small@v3", "version_failed"),
        ("small@v4", "version_removed"),
        ("small@v0", "version_removed"),
        ("other@v1", "alias_switched"),
        ("mark-1", None),
        ("mark-3", "version_failed"),
        ("mark-9", "unknown_version"),
    ],
)
def test_a_session_moves_only_when_its_version_is_gone(version: str, reason: str | None) -> None:
    pin = next_pin(Pin(4, version), KNOWN, lambda: "small@v5")
    named = KNOWN.marks.get(version, version)
    if reason is None:
        assert pin == Pin(4, named)
        assert pin.moved is None
    else:
        assert pin == Pin(5, "small@v5")
        assert pin.moved == Moved(named, "small@v5", reason)


@given(st.sampled_from(sorted(KNOWN.states)))
def test_nobody_is_asked_to_choose_for_a_session_that_stays_and_none_moves_to_where_it_is(version: str) -> None:
    def choose() -> str:
        chosen.append(version)
        return version

    chosen: list[str] = []
    pin = Pin(0, version)
    assert next_pin(pin, KNOWN, choose) == pin
    assert bool(chosen) == (version != "small@v1")


def test_a_view_that_is_not_fresh_moves_nobody_off_a_version_that_it_has_not_heard_of() -> None:
    with pytest.raises(Unheard):
        next_pin(Pin(0, "small@v9"), replace(KNOWN, is_fresh=False), lambda: "small@v1")


def test_a_move_that_nobody_was_told_of_is_told_with_the_next() -> None:
    there = moved_to(moved_to(Pin(0, "a"), "b", Reason.FAILED), "c", Reason.FAILED)
    assert there.moved == Moved("a", "c", "version_failed")
    back = moved_to(moved_to(Pin(0, "a"), "b", Reason.FAILED), "a", Reason.FAILED)
    assert back == Pin(2, "a")
    assert back.moved is None


def test_of_two_first_turns_on_two_versions_the_earlier_counts_and_the_session_is_told() -> None:
    last = LastPin(pin=Pin(0, "small@v1"), newest="small@v2", used_at=100.0)
    pin, is_expired = stored_pin(last, KNOWN, now=150.0, life_s=60.0)
    assert not is_expired
    assert pin.moved == Moved("small@v2", "small@v1", "pin_conflict")
    same = LastPin(pin=Pin(0, "mark-1"), newest="small@v1", used_at=100.0)
    pin, is_expired = stored_pin(same, KNOWN, now=161.0, life_s=60.0)
    assert (pin, pin.moved, is_expired) == (Pin(0, "small@v1"), None, True)


def test_the_registry_says_what_is_known() -> None:
    deployment = Deployment(
        name="small",
        model="small",
        members=(Member(version="small@v2", letter="b", state=MemberState.READY),),
        patience_s=5.0,
        created=0.0,
    )
    versions = {
        f"small@{label}": Version(
            model="small",
            label=label,
            source="/models/small",
            digest="d",
            text="t",
            max_model_len=100,
            fingerprints=(f"mark-{label}",),
            created=0.0,
        )
        for label in ("v1", "v2")
    }
    known = known_of(deployment, versions, {"small@v2": 1.0})
    assert known.states == {"small@v2": MemberState.READY}
    assert known.marks == {"mark-v2": "small@v2"}
    assert known.removed == {"small@v1"}
    assert (known.absent_s, known.patience_s) == ({"small@v2": 1.0}, 5.0)
