"""The step model gives back the speeds that it was made of."""

import math
from dataclasses import replace

import pytest

from axon.domain.sizing import figure as figures
from axon.domain.sizing.engine import cpu_cost, gpu_cost
from axon.domain.sizing.figure import Certainty, EngineFigures
from axon.domain.sizing.shape import KNOWN, Shape
from axon.errors import InvalidInput


@pytest.mark.parametrize("measured", [figures.H200_8B, figures.H200_SMALL], ids=lambda each: each.model)
def test_a_measured_model_has_its_measured_speed(measured: EngineFigures) -> None:
    cost = gpu_cost(KNOWN[measured.model])
    busy_s = 256 * cost.request_s(512, 128, 512 + 64) * cost.kept
    assert math.isclose(256 * 128 / busy_s, measured.many.value, rel_tol=1e-9)
    assert math.isclose(cost.fixed_s, 1 / measured.one_stream.value, rel_tol=1e-9)
    assert cost.certainty is Certainty.MEASURED


def test_the_cpu_has_its_measured_speed() -> None:
    cost = cpu_cost(KNOWN["smollm2-135m"])
    assert math.isclose(128 / cost.request_s(128, 128, 256), figures.CPU_TOKENS.value, rel_tol=1e-9)
    assert cost.certainty is Certainty.MEASURED
    assert cpu_cost(KNOWN["qwen3-0.6b"]).certainty is Certainty.COMPUTED


def test_weights_that_one_gpu_does_not_hold_take_several_and_are_no_measurement() -> None:
    cost = gpu_cost(KNOWN["llama-3-70b"])
    assert cost.num_ranks == 2
    assert cost.certainty is Certainty.ASSUMED
    assert figures.ALL_REDUCE in cost.sources


def test_what_eight_gpus_do_not_hold_is_refused() -> None:
    huge = Shape(
        name="huge",
        num_parameters=10**12,
        num_layers=100,
        num_heads=64,
        num_kv_heads=8,
        head_dim=128,
        max_context=8192,
    )
    with pytest.raises(InvalidInput, match="huge"):
        gpu_cost(huge)


def test_fp8_is_faster_and_70b_fits_on_one_gpu() -> None:
    wide, narrow = gpu_cost(KNOWN["llama-3-8b"]), gpu_cost(KNOWN["llama-3-8b"], fp8=True)
    assert math.isclose(narrow.fixed_s, 1 / figures.H200_8B_FP8.one_stream.value, rel_tol=1e-9)
    assert narrow.request_s(512, 128, 576) < wide.request_s(512, 128, 576)
    assert narrow.kv_room > wide.kv_room
    assert narrow.certainty is Certainty.COMPUTED
    assert gpu_cost(KNOWN["llama-3-70b"], fp8=True).num_ranks == 1


def test_fp8_that_one_gpu_does_not_hold_is_refused() -> None:
    large = replace(KNOWN["llama-3-70b"], name="large", num_parameters=10**11)
    with pytest.raises(InvalidInput, match="large has 115 GB of weights in fp8"):
        gpu_cost(large, fp8=True)


def test_experts_take_memory_and_a_token_is_computed_with_the_active_ones() -> None:
    dense = KNOWN["smollm2-135m"]
    sparse = replace(dense, num_parameters=4 * dense.num_parameters, num_idle_parameters=3 * dense.num_parameters)
    assert cpu_cost(sparse).weight_bytes == 4 * cpu_cost(dense).weight_bytes
    assert cpu_cost(sparse).sequence_s == cpu_cost(dense).sequence_s
    assert cpu_cost(sparse).certainty is Certainty.COMPUTED
