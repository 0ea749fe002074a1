"""Letters of versions: at most four at once, and one that was freed rests before it is given again."""

from dataclasses import replace

import pytest

from axon.domain.registry.deployment import Deployment, FreedLetter
from axon.domain.registry.letters import free_letter, joined, left
from axon.errors import Conflict

EMPTY = Deployment(name="small", model="small", created=1.0, cold_patience_s=0.0)


def with_versions(num: int) -> Deployment:
    made = EMPTY
    for number in range(1, num + 1):
        made = joined(made, f"small@v{number}", at=10.0, rest_s=600.0)
    return made


def test_the_first_version_has_no_letter_and_the_others_one_each() -> None:
    made = with_versions(4)
    assert [member.letter for member in made.members] == ["", "b", "c", "d"]
    assert {member.since for member in made.members} == {10.0}


def test_a_fifth_version_is_refused_with_the_four_that_are_there() -> None:
    with pytest.raises(Conflict, match="small@v1, small@v2, small@v3, small@v4") as refused:
        joined(with_versions(4), "small@v5", at=20.0, rest_s=600.0)
    assert refused.value.code == "too_many_versions"


def test_a_version_joins_once() -> None:
    with pytest.raises(Conflict) as refused:
        joined(with_versions(2), "small@v2", at=20.0, rest_s=600.0)
    assert refused.value.code == "version_in_use"


def test_a_freed_letter_rests_for_a_turns_deadline() -> None:
    full = left(with_versions(4), "small@v2", at=100.0)
    assert full.freed == (FreedLetter(letter="b", at=100.0),)
    with pytest.raises(Conflict, match="less than 600 s ago"):
        joined(full, "small@v5", at=699.0, rest_s=600.0)
    again = joined(full, "small@v5", at=700.0, rest_s=600.0)
    member = again.member("small@v5")
    assert member is not None
    assert (member.letter, again.freed) == ("b", ())


def test_while_one_rests_another_free_letter_is_given() -> None:
    one = left(with_versions(2), "small@v1", at=100.0)
    assert free_letter(one, at=101.0, rest_s=600.0) == "c"
    assert free_letter(one, at=701.0, rest_s=600.0) == ""


def test_of_two_times_at_which_a_letter_was_freed_the_later_holds() -> None:
    twice = replace(EMPTY, freed=(FreedLetter(letter="", at=1.0), FreedLetter(letter="", at=500.0)))
    assert free_letter(twice, at=700.0, rest_s=600.0) == "b"


def test_a_letter_rests_for_as_long_as_a_turn_may_wait_for_a_cold_start() -> None:
    patient = replace(EMPTY, cold_patience_s=300.0, freed=(FreedLetter(letter="", at=100.0),))
    assert [free_letter(patient, at=at, rest_s=600.0) for at in (999.0, 1000.0)] == ["b", ""]
