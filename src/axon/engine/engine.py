"""The engine over a model folder: chooses where it runs, and gathers the ranks it is cut over. Token ids in and out."""

from dataclasses import replace
from math import inf
from pathlib import Path

import torch

from axon.engine.backend import OpenWeights, choose_device, choose_dtype, open_model
from axon.engine.batch import Batch
from axon.engine.config import EngineConfig, for_device
from axon.engine.core import EngineCore
from axon.engine.cuda.nvml import open_gauge
from axon.engine.load.architecture import read_architecture
from axon.engine.load.weights import Weights
from axon.engine.parallel.partition import refuse_impossible
from axon.engine.protocol.messages import Counters
from axon.engine.ranks.leader import Lead, open_group
from axon.engine.schedule.blocks import BlockPool
from axon.engine.schedule.feedback_controller import Throttle
from axon.engine.schedule.learned_controller import Pace
from axon.engine.schedule.policy import make_policy
from axon.engine.schedule.scheduler import Scheduler


class Engine(EngineCore):
    """Runs a Llama on this machine's cores or its GPU; where it is cut over several ranks, this is the leading one."""

    @torch.inference_mode()
    def __init__(self, config: EngineConfig, model_dir: Path, open_weights: OpenWeights = Weights) -> None:
        config = for_device(config, choose_device(config))
        architecture = read_architecture(model_dir)
        refuse_impossible(architecture, config.tensor_parallel)
        config = choose_dtype(config, architecture)
        limit = min(config.max_model_len or architecture.max_model_len, architecture.max_model_len)
        self.crew, self.group = open_group(config, model_dir)
        try:
            opened = open_model(
                config, model_dir, architecture, max_model_len=limit, group=self.group, open_weights=open_weights
            )
        except BaseException:
            self.close()
            raise
        self._gauge = open_gauge(uuids_of(config.num_local_ranks)) if config.device == "cuda" else None
        lead = Lead(self.crew, opened.runner, opened.launcher) if self.crew else None
        scheduler = Scheduler(
            BlockPool(opened.num_blocks, config.block_size),
            max_sequences=config.max_sequences,
            max_batch_tokens=config.max_batch_tokens,
            max_prefill_tokens=config.max_prefill_tokens,
            max_model_len=limit,
            eos_ids=architecture.eos_ids,
            policy=make_policy(config.policy),
            version=f"{model_dir.resolve()} {opened.kernel}",
            scores_prompts=opened.launcher is None and lead is None,
        )
        slo_s, most = config.itl_slo_ms / 1000 or inf, config.max_prefill_tokens
        pace = Pace(max_prefill_tokens=most, max_slowdown=config.max_slowdown, slo_s=slo_s)
        super().__init__(
            scheduler,
            lead or opened.runner,
            kernel=opened.kernel,
            pace=None if opened.launcher else pace,
            throttle=Throttle(max_prefill_tokens=most, slo_s=slo_s) if opened.launcher else None,
            launcher=(lead or opened.launcher) if opened.launcher else None,
            speculates=config.speculate and lead is None,  # the other ranks draw nothing to check a guess by
        )

    def _count(self, batch: Batch, step_s: float) -> Counters:
        counters = super()._count(batch, step_s)
        if self._gauge is None and self.crew is None:
            return counters
        gpus = self._gauge() if self._gauge else []
        return replace(counters, sent_bytes=self.group.traffic.sent_bytes, gpus=gpus)

    def close(self) -> None:
        """Ends the other ranks, where there are any."""
        if self.crew is not None:
            self.crew.close()
            self.group.close()


def uuids_of(count: int) -> list[str]:
    """Of the first GPUs that torch sees, as the driver writes them."""
    devices = range(min(count, torch.cuda.device_count()))
    return [f"GPU-{torch.cuda.get_device_properties(index).uuid}" for index in devices]
