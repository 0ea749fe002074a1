from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.registry.deployment import Deployment, Member, MemberState
from axon.domain.registry.served import RUNNING, served_of, version_to_serve
from axon.domain.registry.version import Advice
from tests.domain.registry.builders import deployment, rollout, version

V1, V2 = "small@v1", "small@v2"


def test_a_version_is_served_by_what_its_record_says() -> None:
    record = replace(version("v2"), advice=Advice(temperature=0.3, top_k=7), reasons=True)
    served = served_of(record, deployment())
    assert (served.name, served.version, served.max_model_len) == ("small", V2, 2048)
    assert (served.temperature, served.top_k, served.reasons) == (0.3, 7, True)


@pytest.mark.parametrize(
    ("share", "served", "chosen"),
    [
        (0, [], V1),
        (0, [V1], V2),
        (0, [V1, V2], V1),
        (5000, [V1, V2], V1),
        (5000, [V1, V1, V2], V2),
        (9000, [V1, V2, V2], V2),
    ],
)
def test_a_worker_serves_the_version_that_has_fewest_for_its_part(share: int, served: list[str], chosen: str) -> None:
    assert version_to_serve(deployment(going=rollout(share=share)), served) == chosen


def with_states(*states: MemberState) -> Deployment:
    members = tuple(Member(version=f"small@v{index + 1}", state=state) for index, state in enumerate(states))
    return replace(deployment(), members=members)


def test_versions_that_run_nowhere_get_no_worker() -> None:
    assert version_to_serve(with_states(MemberState.FAILED, MemberState.CLOSED), []) == ""
    assert version_to_serve(with_states(MemberState.FAILED, MemberState.DRAINING), []) == V2


@given(st.lists(st.sampled_from(MemberState), min_size=1, max_size=4), st.integers(1, 12))
def test_as_many_workers_as_versions_serve_every_one(states: list[MemberState], num: int) -> None:
    made, served = with_states(*states), list[str]()
    for _ in range(num):
        if found := version_to_serve(made, served):
            served.append(found)
    running = [member.version for member in made.members if member.state in RUNNING]
    assert len(set(served)) == min(num, len(running))
