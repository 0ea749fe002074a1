"""The settings of an engine as vLLM's arguments. Pure functions; imports no vLLM."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from axon.engine.config import EngineConfig
from axon.errors import Misconfigured

_MAX_LOGPROBS = 20
_DTYPES = {"auto": "auto", "float32": "float32", "bfloat16": "bfloat16", "fp8": "auto"}


def arguments_of(config: EngineConfig, model_dir: Path) -> dict[str, Any]:
    """The arguments of vLLM's ``EngineArgs``, for a config with the defaults of its device; raises ``Misconfigured``
    for a setting that vLLM has no counterpart of."""
    if config.dtype not in _DTYPES:
        raise Misconfigured(f"engine.dtype = {config.dtype} is not for vLLM; it has {', '.join(_DTYPES)}")
    arguments = {
        "model": str(model_dir),
        "dtype": _DTYPES[config.dtype],
        "quantization": "fp8" if config.dtype == "fp8" else None,
        "kv_cache_dtype": config.kv_dtype,
        "max_model_len": config.max_model_len or None,
        "max_num_seqs": config.max_sequences,
        "max_num_batched_tokens": config.max_batch_tokens or None,
        "block_size": config.block_size or None,
        "tensor_parallel_size": config.tensor_parallel,
        "kv_cache_memory_bytes": config.kv_memory_bytes or None,
        "gpu_memory_utilization": config.gpu_memory_fraction if config.device == "cuda" else None,
        "enable_prefix_caching": True,
        "scheduling_policy": "priority",
        "structured_outputs_config": {"backend": "guidance"},
        "logprobs_mode": "raw_logprobs",
        "max_logprobs": _MAX_LOGPROBS,
        "skip_tokenizer_init": not (model_dir / "tokenizer.json").exists(),
        "generation_config": "vllm",  # sampling defaults are the gateway's
        "disable_log_stats": True,
    }
    return {name: value for name, value in arguments.items() if value is not None} | extra_arguments(config)


def extra_arguments(config: EngineConfig) -> dict[str, object]:
    """What ``engine.vllm_arguments`` has; raises ``Misconfigured`` if that is no JSON object."""
    try:
        extra = json.loads(config.vllm_arguments or "{}")
    except ValueError as error:
        raise Misconfigured(f"engine.vllm_arguments is no JSON: {error}") from error
    if not isinstance(extra, dict):
        raise Misconfigured('engine.vllm_arguments must be a JSON object, such as {"enforce_eager": true}')
    return extra


def environment_of(config: EngineConfig) -> dict[str, str]:
    """Variables that vLLM reads when it is imported: it computes in this process, and tells nobody that it runs."""
    variables = {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CONFIGURE_LOGGING": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
    }
    if config.device == "cpu":
        variables["VLLM_TARGET_DEVICE"] = "cpu"
    if config.threads:
        variables |= {"OMP_NUM_THREADS": str(config.threads), "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    return variables


def read_eos_ids(model_dir: Path) -> list[int]:
    """The model's end tokens, as its files name them."""
    for name in ("generation_config.json", "config.json"):
        content = _read_json(model_dir / name)
        text = content.get("text_config")
        for each in (content, text if isinstance(text, Mapping) else {}):
            if (eos := each.get("eos_token_id")) is not None:
                return sorted([eos] if isinstance(eos, int) else eos)
    return []


def _read_json(path: Path) -> Mapping[str, Any]:
    content = json.loads(path.read_text()) if path.exists() else {}
    return content if isinstance(content, Mapping) else {}
