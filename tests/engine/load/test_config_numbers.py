"""Numbers of a config.json that no engine can compute with are refused before one starts."""

import json
from pathlib import Path
from typing import Any

import pytest

from axon.engine.load.architecture import read_architecture
from axon.errors import Misconfigured
from tests.engine.builders import TINY_CONFIG
from tests.engine.checkpoints import make_checkpoint

ROPE = {"rope_type": "default", "rope_theta": 10000.0}


def written(folder: Path, config: dict[str, Any]) -> Path:
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rope_theta": None}, "rope_theta is no number above 0"),
        ({"rope_theta": 0}, "rope_theta is no number above 0"),
        ({"rope_theta": "10000"}, "rope_theta is no number above 0"),
        ({"rope_parameters": ROPE | {"rope_theta": -1}}, "rope_theta is no number above 0"),
        ({"rope_parameters": ROPE | {"rope_theta": float("nan")}}, "rope_theta is no number above 0"),
        ({"rms_norm_eps": 10**400}, "rms_norm_eps|too large"),
        ({"head_dim": 7}, "7 dimensions of a head are rotated, in place of an even number"),
        ({"num_attention_heads": 5}, r"5 heads .* are no multiple of 2 \(num_key_value_heads\)"),
        ({"num_key_value_heads": 12}, r"6 heads .* are no multiple of 12"),
        ({"model_type": "mistral", "sliding_window": -1}, "sliding_window is no whole number from 1"),
        ({"model_type": "mistral", "sliding_window": 2.5}, "sliding_window is no whole number from 1"),
        ({"model_type": "phi3", "rope_parameters": ROPE | {"partial_rotary_factor": 2.5}}, "20 dimensions of a head"),
        ({"model_type": "phi3", "rope_parameters": ROPE | {"partial_rotary_factor": 0.4}}, "3 dimensions of a head"),
        ({"model_type": "phi3", "rope_parameters": ROPE | {"partial_rotary_factor": "x"}}, "partial_rotary_factor is"),
    ],
)
def test_a_number_that_cannot_be_computed_with_is_named(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=said):
        read_architecture(written(tmp_path, TINY_CONFIG | changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sliding_window": 0}, "sliding_window is no"),
        ({"sliding_window": (1 << 32) + 24}, "sliding_window is no"),  # a kernel would take it for 24
        ({"query_pre_attn_scalar": -1}, "query_pre_attn_scalar is no number above 0"),
        ({"query_pre_attn_scalar": 0}, "query_pre_attn_scalar is no number above 0"),
    ],
)
def test_a_number_of_gemma_is_named_too(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    config = json.loads((make_checkpoint(tmp_path, "gemma3") / "config.json").read_text())
    with pytest.raises(Misconfigured, match=said):
        read_architecture(written(tmp_path, config | changes))


def test_a_number_that_a_family_has_not_changes_nothing(tmp_path: Path) -> None:
    """transformers does not read it either."""
    plain = read_architecture(written(tmp_path, TINY_CONFIG))
    assert read_architecture(written(tmp_path, TINY_CONFIG | {"query_pre_attn_scalar": 4})) == plain


def test_a_large_epsilon_is_a_float(tmp_path: Path) -> None:
    """The kernels take no whole number of that size."""
    epsilon = read_architecture(written(tmp_path, TINY_CONFIG | {"rms_norm_eps": 10**25})).rms_norm_eps
    assert isinstance(epsilon, float)
