"""The engine over a model folder: chooses its backend and gathers the ranks of its group. Token ids in and out."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from axon.engine.adapters import Adapters
from axon.engine.backend import choose_device, choose_dtype, open_backend
from axon.engine.batch import Batch
from axon.engine.config import EngineConfig, for_device
from axon.engine.core import EngineCore
from axon.engine.cuda.nvml import open_gauge
from axon.engine.draft_backend import plan_draft
from axon.engine.grammar.grammars import Grammars
from axon.engine.grammar.vocabulary import Vocabulary, read_vocabulary
from axon.engine.load.architecture import read_architecture
from axon.engine.load.tensor_files import find_tensors
from axon.engine.parallel.partition import refuse_impossible
from axon.engine.protocol.messages import Counters
from axon.engine.ranks.leader import Leader, LeadingMover, open_group
from axon.engine.runner import Backend, Mover
from axon.engine.schedule.blocks import BlockPool
from axon.engine.schedule.limits.controller import StepController
from axon.engine.schedule.limits.device_drafts import DeviceDrafts
from axon.engine.schedule.limits.feedback_controller import FeedbackController
from axon.engine.schedule.limits.learned_controller import LearnedController
from axon.engine.schedule.policy import make_policy
from axon.engine.schedule.scheduler import Scheduler
from axon.engine.schedule.scoring import MAX_SCORED_TOKENS
from axon.engine.schedule.shelf import Shelf
from axon.engine.shelf.opening import identity_of, open_shelf

if TYPE_CHECKING:
    from axon.engine.torch_backend import OpenWeights

_HEAD_STREAMS = 2
"""Most streams beside which a head drafts: with four of them and more its drafts were measured to cost time."""


class Engine(EngineCore):
    """Runs a Llama on this machine's cores or its GPU; of several ranks, this is the leading one."""

    def __init__(
        self,
        config: EngineConfig,
        model_dir: Path,
        open_weights: "OpenWeights | None" = None,
        *,
        vocabulary: Vocabulary | None = None,
    ) -> None:
        """``vocabulary`` is the model's, if it was read before. Otherwise it is read in an idle moment, or for the
        first grammar, where it would hold up the streams that run."""
        config = for_device(config, choose_device(config))
        architecture = read_architecture(model_dir)
        refuse_impossible(architecture, config.tensor_parallel)
        config = choose_dtype(config, architecture)
        limit = min(config.max_model_len or architecture.max_model_len, architecture.max_model_len)
        plan = plan_draft(config, model_dir, architecture)
        config = plan.target if plan else config
        self.crew, self.group = open_group(config, model_dir)
        try:
            backend = open_backend(
                config,
                model_dir,
                architecture,
                max_model_len=limit,
                group=self.group,
                open_weights=open_weights,
                head=plan.head if plan else None,
                draft_memory=plan.draft_memory if plan else None,
            )
            draft_model = plan.open(backend, max_model_len=limit, open_weights=open_weights) if plan else None
            shelf, mover = shelf_of(config, model_dir, backend)
        except BaseException:
            self._close_group()
            raise
        self._gauge = open_gauge(uuids_of(config.num_local_ranks)) if config.device == "cuda" else None
        leader = Leader(self.crew, backend.runner, backend.launcher) if self.crew else None
        scheduler = Scheduler(
            BlockPool(backend.num_blocks, config.block_size),
            max_sequences=config.max_sequences,
            max_batch_tokens=config.max_batch_tokens,
            max_prefill_tokens=config.max_prefill_tokens,
            max_model_len=limit,
            eos_ids=architecture.eos_ids,
            policy=make_policy(config.policy),
            version=f"{model_dir.resolve()} {backend.kernel}",
            max_scored_tokens=config.max_batch_tokens if backend.scores_any else MAX_SCORED_TOKENS,
            shelf=shelf,
            max_draft_len=draft_model.max_len if draft_model else 0,
            has_head=draft_model is not None and not draft_model.keeps_drafts,
        )
        read = partial(vocabulary_of, model_dir) if vocabulary is None else lambda: vocabulary
        super().__init__(
            scheduler,
            leader or backend.runner,
            kernel=backend.kernel,
            controller=make_controller(
                config,
                backend,
                leads=leader is not None,
                draft_tokens=config.draft_tokens if plan else 0,
                draft_streams=_HEAD_STREAMS if plan and plan.head else inf,
            ),
            launcher=(leader or backend.launcher) if backend.launcher else None,
            later=later_of(backend.later, draft_model.later if draft_model else None),
            open_grammars=partial(Grammars, read),
            grammars_are_dear=True,
            mover=LeadingMover(self.crew, mover) if self.crew and mover else mover,
            draft_model=draft_model,
            adapters=adapters_of(config, backend) if leader is None else None,
        )

    def _count(self, batch: Batch, step_s: float) -> Counters:
        counters = super()._count(batch, step_s)
        if self._gauge is None and self.crew is None:
            return counters
        gpus = self._gauge() if self._gauge else []
        sent_bytes = self.group.traffic.sent_bytes if self.group else 0
        return replace(counters, sent_bytes=sent_bytes, gpus=gpus)

    def close(self) -> None:
        """Ends its threads, and the other ranks, where there are any."""
        super().close()
        self._close_group()

    def _close_group(self) -> None:
        if self.crew is not None:
            self.crew.close()
        if self.group is not None:
            self.group.close()


def vocabulary_of(model_dir: Path) -> Vocabulary:
    """Reads the vocabulary of a model for grammars; raises ``Misconfigured`` if it cannot be used for them."""
    architecture = read_architecture(model_dir)
    return read_vocabulary(model_dir, size=architecture.vocab_size, eos_ids=architecture.eos_ids)


def shelf_of(config: EngineConfig, model_dir: Path, backend: Backend) -> tuple[Shelf | None, Mover | None]:
    """The shelf for copies of KV blocks, and what makes them; neither where the settings ask for none."""

    def identity() -> str:
        weight_files = sorted({tensor.path for tensor in find_tensors(model_dir).values()})
        return identity_of(model_dir, f"{backend.kernel} {config.block_size} {backend.block_bytes}", weight_files)

    return open_shelf(config, block_bytes=backend.block_bytes, identity=identity, open_mover=backend.open_mover)


def later_of(*pieces: Callable[[], bool] | None) -> Callable[[], bool] | None:
    """Returns one call for the work of both models that can wait: it does a piece of the first that has any left."""
    given = [piece for piece in pieces if piece is not None]
    return (lambda: any(piece() for piece in given)) if given else None


def adapters_of(config: EngineConfig, backend: Backend) -> Adapters | None:
    """The LoRA adapters of a backend; None where it computes none, or the settings allow none."""
    if backend.adapters is None or config.adapter_slots < 1:
        return None
    return Adapters(backend.adapters, most=config.adapter_slots, most_bytes=config.adapter_memory_bytes)


def make_controller(
    config: EngineConfig, backend: Backend, *, leads: bool, draft_tokens: int = 0, draft_streams: float = inf
) -> StepController:
    """The controller of chunk and draft sizes for a backend; ``leads``: there are other ranks. ``draft_tokens``: most
    drafts of the draft model for a stream, 0 without one; ``draft_streams``: most streams that it drafts beside."""
    slo_s = config.itl_slo_ms / 1000 or inf
    if backend.launcher is not None:
        drafts = DeviceDrafts(draft_tokens=draft_tokens) if config.speculate and not leads else None
        return FeedbackController(max_prefill_tokens=config.max_prefill_tokens, slo_s=slo_s, drafts=drafts)
    return LearnedController(
        max_prefill_tokens=config.max_prefill_tokens,
        max_slowdown=config.max_slowdown,
        slo_s=slo_s,
        drafts=config.speculate and not leads,  # the other ranks draw no tokens to verify drafts by
        draft_tokens=draft_tokens,
        draft_streams=draft_streams,
    )


def uuids_of(count: int) -> list[str]:
    """The UUIDs of the first GPUs that torch sees, as the driver writes them."""
    import torch

    devices = range(min(count, torch.cuda.device_count()))
    return [f"GPU-{torch.cuda.get_device_properties(index).uuid}" for index in devices]
