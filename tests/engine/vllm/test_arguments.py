"""The settings of an engine as vLLM's arguments."""

import json
from pathlib import Path

import pytest

from axon.engine.config import EngineConfig, for_device
from axon.engine.vllm.arguments import arguments_of, environment_of, read_eos_ids
from axon.errors import Misconfigured


def test_settings_that_nobody_made_are_left_to_vllm(tmp_path: Path) -> None:
    arguments = arguments_of(for_device(EngineConfig(kind="vllm"), "cuda"), tmp_path)
    assert not {"max_model_len", "kv_cache_memory_bytes", "quantization"} & arguments.keys()
    assert arguments["gpu_memory_utilization"] == 0.9
    assert arguments["max_num_seqs"] == 256
    assert arguments["skip_tokenizer_init"], "there is no tokenizer.json"


def test_a_cpus_memory_is_for_blocks_alone(tmp_path: Path) -> None:
    arguments = arguments_of(for_device(EngineConfig(kind="vllm", kv_memory_bytes=1 << 25), "cpu"), tmp_path)
    assert arguments["kv_cache_memory_bytes"] == 1 << 25
    assert "gpu_memory_utilization" not in arguments


def test_fp8_is_a_way_to_quantise_and_int8_is_refused(tmp_path: Path) -> None:
    arguments = arguments_of(EngineConfig(kind="vllm", dtype="fp8", kv_dtype="fp8"), tmp_path)
    assert (arguments["dtype"], arguments["quantization"], arguments["kv_cache_dtype"]) == ("auto", "fp8", "fp8")
    with pytest.raises(Misconfigured, match="int8 is not for vLLM; it has auto, float32"):
        arguments_of(EngineConfig(kind="vllm", dtype="int8"), tmp_path)


def test_an_operators_own_arguments_go_before_all_others(tmp_path: Path) -> None:
    extra = json.dumps({"enforce_eager": True, "max_num_seqs": 3})
    arguments = arguments_of(EngineConfig(kind="vllm", max_sequences=8, vllm_arguments=extra), tmp_path)
    assert (arguments["enforce_eager"], arguments["max_num_seqs"]) == (True, 3)
    for wrong, said in (("{", "is no JSON"), ("[1]", "must be a JSON object")):
        with pytest.raises(Misconfigured, match=said):
            arguments_of(EngineConfig(kind="vllm", vllm_arguments=wrong), tmp_path)


def test_vllm_computes_in_the_engines_process_asks_no_hub_and_reports_to_nobody() -> None:
    variables = environment_of(EngineConfig(kind="vllm"))
    assert variables["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"
    assert variables["VLLM_NO_USAGE_STATS"] == variables["HF_HUB_OFFLINE"] == "1"
    assert "VLLM_TARGET_DEVICE" not in variables
    on_cpu = environment_of(EngineConfig(kind="vllm", device="cpu", threads=2))
    assert (on_cpu["VLLM_TARGET_DEVICE"], on_cpu["OMP_NUM_THREADS"]) == ("cpu", "2")


@pytest.mark.parametrize(
    ("config", "generation", "expected"),
    [
        ({"eos_token_id": 3}, None, [3]),
        ({"eos_token_id": 3}, {"eos_token_id": [9, 5]}, [5, 9]),
        ({"text_config": {"eos_token_id": 4}}, {"temperature": 1.0}, [4]),
        ({}, None, []),
    ],
)
def test_end_tokens_are_read_as_files_name_them(
    tmp_path: Path, config: object, generation: object, expected: list[int]
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    if generation is not None:
        (tmp_path / "generation_config.json").write_text(json.dumps(generation))
    assert read_eos_ids(tmp_path) == expected
