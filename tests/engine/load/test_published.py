"""Configs with the keys and sizes of published models: the engine counts the parameters that these have."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from axon.engine.load.architecture import Architecture, Experts, read_architecture

COMMON: dict[str, Any] = {"rms_norm_eps": 1e-5}
MIXTRAL_8X7B = COMMON | {
    "model_type": "mixtral",
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 32768,
    "num_attention_heads": 32,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "rope_theta": 1000000.0,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "vocab_size": 32000,
}
QWEN3_30B_A3B = COMMON | {
    "model_type": "qwen3_moe",
    "attention_bias": False,
    "decoder_sparse_step": 1,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "max_position_embeddings": 40960,
    "mlp_only_layers": [],
    "moe_intermediate_size": 768,
    "norm_topk_prob": True,
    "num_attention_heads": 32,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 48,
    "num_key_value_heads": 4,
    "rope_scaling": None,
    "rope_theta": 1000000.0,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
GEMMA_3_1B = COMMON | {
    "model_type": "gemma3_text",
    "attention_bias": False,
    "attn_logit_softcapping": None,
    "final_logit_softcapping": None,
    "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 1152,
    "intermediate_size": 6912,
    "max_position_embeddings": 32768,
    "num_attention_heads": 4,
    "num_hidden_layers": 26,
    "num_key_value_heads": 1,
    "query_pre_attn_scalar": 256,
    "rope_local_base_freq": 10000,
    "rope_scaling": None,
    "rope_theta": 1000000,
    "sliding_window": 512,
    "sliding_window_pattern": 6,
    "vocab_size": 262144,
}
PHI_4_MINI = COMMON | {
    "model_type": "phi3",
    "attention_bias": False,
    "full_attn_mod": 1,
    "hidden_act": "silu",
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "max_position_embeddings": 131072,
    "mlp_bias": False,
    "num_attention_heads": 24,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "original_max_position_embeddings": 4096,
    "partial_rotary_factor": 0.75,
    "rope_scaling": {"long_factor": [2.0] * 48, "short_factor": [1.0] * 48, "type": "longrope"},
    "rope_theta": 10000.0,
    "sliding_window": 262144,
    "tie_word_embeddings": True,
    "vocab_size": 200064,
}
GPT_OSS_20B = COMMON | {
    "model_type": "gpt_oss",
    "attention_bias": True,
    "head_dim": 64,
    "hidden_act": "silu",
    "hidden_size": 2880,
    "initial_context_length": 4096,
    "intermediate_size": 2880,
    "layer_types": ["sliding_attention", "full_attention"] * 12,
    "max_position_embeddings": 131072,
    "num_attention_heads": 64,
    "num_experts_per_tok": 4,
    "num_hidden_layers": 24,
    "num_key_value_heads": 8,
    "num_local_experts": 32,
    "quantization_config": {"modules_to_not_convert": ["model.layers.*.self_attn"], "quant_method": "mxfp4"},
    "rope_scaling": {
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "factor": 32.0,
        "original_max_position_embeddings": 4096,
        "rope_type": "yarn",
        "truncate": False,
    },
    "rope_theta": 150000,
    "sliding_window": 128,
    "swiglu_limit": 7.0,
    "tie_word_embeddings": False,
    "vocab_size": 201088,
}
PUBLISHED = {
    "Mixtral 8x7B": (MIXTRAL_8X7B, 46_702_792_704, 12_879_925_248, 32768),
    "Qwen3-30B-A3B": (QWEN3_30B_A3B, 30_532_122_624, 3_353_032_704, 40960),
    "Gemma 3 1B": (GEMMA_3_1B, 999_885_952, 999_885_952, 32768),
    "gpt-oss-20b": (GPT_OSS_20B, 20_914_757_184, 4_187_440_704, 131072),
    "Phi-4-mini": (PHI_4_MINI, 3_836_021_760, 3_836_021_760, 4096),
}


def read(config: dict[str, Any], folder: Path) -> Architecture:
    (folder / "config.json").write_text(json.dumps(config))
    return read_architecture(folder)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_config_has_its_known_number_of_parameters(name: str, tmp_path: Path) -> None:
    config, num_parameters, num_active, length = PUBLISHED[name]
    found = read(config, tmp_path)
    assert found.num_parameters() == num_parameters
    assert found.num_parameters() - found.num_idle_parameters() == num_active
    assert found.max_model_len == length


def test_gemmas_windows_lie_between_every_sixth_layer(tmp_path: Path) -> None:
    found = read(GEMMA_3_1B, tmp_path)
    assert [layer for layer in range(26) if found.window_of(layer) == 0] == [5, 11, 17, 23]
    assert {found.rope_of(layer).theta for layer in (0, 24)} == {10000.0}
    assert found.rope_of(5).theta == 1000000.0
    assert found.query_scale == 1 / 16


def test_phis_longrope_scales_cosines_by_how_far_it_was_stretched(tmp_path: Path) -> None:
    found = read(PHI_4_MINI, tmp_path)
    assert found.rope.rotary_dim(found.head_dim) == 96
    assert found.rope.scale == pytest.approx(1.1902380714)


def test_gpt_oss_has_windows_in_every_other_layer_and_a_stretched_rope(tmp_path: Path) -> None:
    found = read(GPT_OSS_20B, tmp_path)
    assert found.windows == (128, 0) * 12
    assert found.rope_of(0) is found.rope_of(1)
    assert found.rope.scale == pytest.approx(0.1 * math.log(32) + 1)
    assert found.rope.frequencies(64)[-1] == pytest.approx(150000 ** (-62 / 64) / 32)
    assert found.experts == Experts(
        count=32, per_token=4, inner_size=2880, normalises=True, has_bias=True, limit=7.0, slope=1.702
    )
    assert not found.is_fp8
