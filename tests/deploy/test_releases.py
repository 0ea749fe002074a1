"""The values of earlier releases still render, and change nothing that an installation relies on."""

import pytest

from tests.deploy.chart import release_set, rendered
from tests.deploy.releases import fixed, fixed_of, kept, version


def test_the_present_release_is_kept() -> None:
    assert version() in kept(), "run `python -m tests.deploy.releases`"


@pytest.mark.parametrize("release", kept())
def test_the_values_of_a_release_render_with_this_chart(release: str) -> None:
    promised, now = fixed_of(release), fixed(rendered(release_set(release)))
    assert {name: now["selectors"].get(name) for name in promised["selectors"]} == promised["selectors"]
    assert {name: now["services"].get(name) for name in promised["services"]} == promised["services"]
    assert set(promised["accounts"]) <= set(now["accounts"])
