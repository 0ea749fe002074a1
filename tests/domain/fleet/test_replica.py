"""Names of replicas: what they say, and that no two groups share one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.fleet.replica import Group, ReplicaName, parse_replica

names = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,20}", fullmatch=True)
groups = st.builds(Group, names, st.sampled_from(["", "b", "c", "d"]), st.one_of(st.just(""), names))


@given(groups, st.integers(0, 10_000))
def test_a_name_says_what_it_was_made_from(group: Group, index: int) -> None:
    assert parse_replica(str(group.replica(index))) == ReplicaName(group, index)


@given(groups, groups, st.integers(0, 20), st.integers(0, 20))
def test_no_two_replicas_share_a_name(one: Group, other: Group, first: int, second: int) -> None:
    assert (str(one.replica(first)) == str(other.replica(second))) == ((one, first) == (other, second))


@pytest.mark.parametrize("text", ["", "host-12ab-0", "small", "small#", "small#gold", "small~bb#-0", "#-0", "small#-x"])
def test_the_name_of_a_worker_that_nobody_launched_is_none(text: str) -> None:
    assert parse_replica(text) is None
