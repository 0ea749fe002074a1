"""Opens vLLM for a model, in this process. The only file that imports vLLM, beside the one that knows its grammars."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from axon.engine.config import EngineConfig, for_device
from axon.engine.vllm.arguments import arguments_of, environment_of, read_eos_ids
from axon.engine.vllm.outputs import Output
from axon.errors import Misconfigured


class Llm(Protocol):
    """vLLM's ``LLMEngine``, as far as it is used here."""

    def add_request(self, request_id: str, prompt: Any, params: Any, *, priority: int = 0) -> str | None: ...
    def abort_request(self, request_ids: list[str]) -> None: ...
    def step(self) -> Sequence[Output]: ...


class OpenedVllm(Protocol):
    """vLLM with a model in it."""

    @property
    def llm(self) -> Llm: ...
    @property
    def kernel(self) -> str: ...
    @property
    def max_model_len(self) -> int: ...
    @property
    def max_sequences(self) -> int: ...
    @property
    def num_blocks(self) -> int: ...
    @property
    def block_size(self) -> int: ...
    @property
    def eos_ids(self) -> list[int]: ...
    @property
    def refusals(self) -> tuple[type[Exception], ...]: ...
    def sampling(self, arguments: dict[str, Any], grammar: str) -> Any: ...
    def follow(self, request_id: str, token_ids: list[int]) -> None: ...
    def num_free_blocks(self) -> int: ...
    def close(self) -> None: ...


@dataclass(kw_only=True)
class InThisProcess:
    """An ``LLMEngine`` whose core runs in this process, so that the two live and die as one."""

    llm: Any
    kernel: str
    max_model_len: int
    max_sequences: int
    num_blocks: int
    block_size: int
    eos_ids: list[int]
    refusals: tuple[type[Exception], ...] = (ValueError, TypeError)
    """What it raises for a sequence that it does not take; anything else is a fault of its own."""

    def sampling(self, arguments: dict[str, Any], grammar: str) -> Any:
        """vLLM's sampling parameters; raises one of ``refusals`` for values that it does not take."""
        from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams

        outputs = StructuredOutputsParams(grammar=grammar) if grammar else None
        return SamplingParams(**arguments, output_kind=RequestOutputKind.DELTA, structured_outputs=outputs)

    def follow(self, request_id: str, token_ids: list[int]) -> None:
        """Takes the grammar of a sequence that was just added over tokens that were emitted before; raises
        ``ValueError`` if they do not follow it."""
        from axon.engine.vllm.grammar import follow

        follow(self._core.scheduler.requests[request_id], token_ids)

    def num_free_blocks(self) -> int:
        """Blocks that no sequence has, cached ones among them."""
        return int(self._core.scheduler.kv_cache_manager.block_pool.get_num_free_blocks())

    def close(self) -> None:
        """Ends the processes of other ranks, if any."""
        self.llm.engine_core.shutdown()

    @property
    def _core(self) -> Any:
        return self.llm.engine_core.engine_core


def open_vllm(config: EngineConfig, model_dir: Path) -> InThisProcess:
    """Loads the model; raises ``Misconfigured`` where vLLM is not installed or does not take a setting."""
    os.environ.update(environment_of(config))
    try:
        import vllm
        from vllm.config import StructuredOutputsConfig
        from vllm.engine.arg_utils import EngineArgs
        from vllm.platforms import current_platform
        from vllm.v1.engine.llm_engine import LLMEngine

        from axon.engine.vllm.grammar import take_grammars
    except ImportError as error:
        raise Misconfigured(
            f"The interpreter of engine.vllm_python has no vLLM that can be imported ({error}): pip install vllm there"
        ) from error
    device: Literal["cpu", "cuda"] = "cpu" if current_platform.is_cpu() else "cuda"
    asked = config
    config = replace(for_device(asked, device), block_size=asked.block_size, max_batch_tokens=asked.max_batch_tokens)
    try:
        named = arguments_of(config, model_dir)
        outputs = StructuredOutputsConfig(**named.pop("structured_outputs_config"))
        arguments = EngineArgs(**named, structured_outputs_config=outputs)
    except TypeError as error:  # a name that this release does not know
        raise Misconfigured(
            f"vLLM {vllm.__version__} does not take what engine.vllm_arguments says: {error}"
        ) from error
    llm = LLMEngine.from_engine_args(arguments)
    take_grammars()
    cache, model = llm.vllm_config.cache_config, llm.model_config
    return InThisProcess(
        llm=llm,
        kernel=f"vllm-{vllm.__version__}-{str(model.dtype).removeprefix('torch.')}-{device}",
        max_model_len=model.max_model_len,
        max_sequences=arguments.max_num_seqs,
        num_blocks=cache.num_gpu_blocks,
        block_size=cache.block_size,
        eos_ids=read_eos_ids(model_dir),
        refusals=_refusals(),
    )


def _refusals() -> tuple[type[Exception], ...]:
    """Some releases have classes of their own for what a request must not have, which are no ``ValueError``."""
    try:
        from vllm.exceptions import VLLMClientError
    except ImportError:
        return (ValueError, TypeError)
    return (ValueError, TypeError, VLLMClientError)
