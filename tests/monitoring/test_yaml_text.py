"""YAML of ours, read back by a library."""

import yaml
from hypothesis import given
from hypothesis import strategies as st

from axon.monitoring.yaml_text import yaml_text

TEXT = st.text(st.sampled_from("ab:#-'\"\\ {}[]%|>!&*,?\n\té→01"), max_size=12)
PLAIN = st.recursive(
    TEXT | st.integers() | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(PLAIN)
def test_what_is_written_is_read_back(value: object) -> None:
    assert yaml.safe_load(yaml_text(value)) == value


def test_a_comment_stands_before_the_value() -> None:
    assert yaml_text({"a": [1, {"b": "yes"}]}, "One.\nTwo.") == '# One.\n# Two.\na:\n  - 1\n  - b: "yes"\n'
