"""Launches steps on the device and fetches the tokens they drew. Knows no scheduler.

A step is launched while the one before it runs: the tokens which that one draws stay on the device as input. The draws
of a step with grammars are launched when their masks are filled, at the latest before the next step. A step of
decodes is one CUDA graph, and so is one with few prompt tokens; one with many is launched kernel by kernel, because its
computation hides the launches, and so is one that scores prompt tokens. So is every step whose graph is not recorded
yet: with the graph's shapes, so that its results do not depend on when the graph is recorded.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from axon.domain.sampling import Sampling
from axon.engine.batch import Batch, Draw, Drawn, Span
from axon.engine.cuda import tuning
from axon.engine.cuda.adapters.adapted_inputs import AdaptedInputs
from axon.engine.cuda.adapters.adapter_rows import MOST_PAGES
from axon.engine.cuda.jit import overlaps
from axon.engine.cuda.memory.kv_memory import KVBlocks
from axon.engine.cuda.model import CudaLlama
from axon.engine.cuda.sample.prompt_scores import ScoredRows, score_rows
from axon.engine.cuda.sample.sampler import DeviceSampler
from axon.engine.cuda.step.block_entries import enter_blocks
from axon.engine.cuda.step.device_clock import DeviceClock
from axon.engine.cuda.step.flight import CudaFlight, wait_for
from axon.engine.cuda.step.graph_choice import graph_key
from axon.engine.cuda.step.graph_plan import GraphKey, GraphPlan
from axon.engine.cuda.step.host_ring import HostRing
from axon.engine.cuda.step.recording import ChunkGraph, record
from axon.engine.cuda.step.special_draws import SpecialDraws, drawn_rows
from axon.engine.cuda.step.step_arrays import Chunks, Decodes, Packed, halve, layout, order, pack_mixed, places_of
from axon.engine.cuda.step.table_slots import Slots
from axon.engine.cuda.step.transfer import send

logger = logging.getLogger(__name__)


class CudaRunner:
    """Holds the model, its KV memory and the CUDA graphs."""

    @torch.inference_mode()
    def __init__(
        self,
        model: CudaLlama,
        kv: KVBlocks,
        *,
        max_rows: int,
        max_tokens: int,
        speculates: bool = False,
        drafts: bool = False,
    ) -> None:
        """``speculates``: steps may have drafts. ``drafts``: the model drafts for another, so that short runs come
        without drafts of their own."""
        self.device = model.device
        self._model = self.model = model
        self._group = model.group
        self._kv = self.kv = kv
        self._pdl = overlaps(self.device)
        max_draws = max_rows + tuning.MOST_RUN_ROWS
        self._sampler = DeviceSampler(model.architecture.vocab_size, max_draws, self.device)
        self._slots = Slots(max_rows, kv.table_width)
        self._sizes = tuning.ladder(max_rows)
        self._chunk_sizes = tuning.chunk_ladder(model.num_weights, max_tokens)
        self._run_shapes = {size: Chunks(size, tuning.RUN_QUERIES, max_spans=size) for size in tuning.run_ladder()}
        self._drafts, self._has_runs = drafts, drafts or speculates
        self._chunk_shapes = {size: Chunks(size, model.queries_per_tile) for size in self._chunk_sizes}
        run_sizes = list(self._run_shapes) if self._has_runs and not self._group.is_cut else []
        self._plan = GraphPlan(decode_sizes=self._sizes, chunk_sizes=self._chunk_sizes, run_sizes=run_sizes)
        self._graphs: dict[GraphKey, tuple[Any, torch.Tensor]] = {}
        self._chunk_graphs: dict[GraphKey, ChunkGraph] = {}
        self._sampled = torch.zeros(max_draws, dtype=torch.int32, device=self.device)
        self._most_tokens: int | None = None
        """Steps with more tokens are halved: one of about twice this size ran out of memory."""
        self._previous: CudaFlight | None = None
        self._specials = SpecialDraws(self._sampler, self._slots, at_once=self._group.is_cut)
        self._scored: list[ScoredRows] = []
        """Scores of the step that is being launched."""

        pinned = self.device.type == "cuda"
        self._decodes = Decodes(max_rows)
        words = self._decodes.num_words
        self._words = torch.zeros(words, dtype=torch.int32, device=self.device)
        self._inputs: dict[str, torch.Tensor] = self._decodes.views(self._words, torch.float32, torch.float64)
        self._ring = HostRing(self._decodes, max_draws, self.device)
        self._clock = DeviceClock(partial(torch.cuda.Event, enable_timing=True) if pinned else None)
        self.adapters = model.adapters
        self._adapted = AdaptedInputs(self.adapters, self._decodes.max_rows) if self.adapters else None

        padding = torch.zeros(words, dtype=torch.int32)
        views = self._decodes.views(padding.numpy(), np.float32, np.float64)
        self._decodes.pad(views, 0, self._decodes.max_rows, self._slots)
        self._padding = padding.to(self.device)
        """The inputs of a step of decodes that writes to the spare block alone."""
        self._recording: Any = torch.cuda.Stream() if pinned else None  # type: ignore[no-untyped-call]
        self._pool: Any = None
        """The memory that all graphs share."""

    def run(self, batch: Batch) -> list[Drawn]:
        """Launches a step and waits for it."""
        return self.launch(batch).land()

    @torch.inference_mode()
    def launch(self, batch: Batch) -> CudaFlight:
        """Starts a step behind those launched before; placeholders stand for the tokens that the last of them draws."""
        if self._previous is not None:
            self._previous.launch_rest()
        self._ring.turn()
        is_decode = all(len(span.token_ids) == 1 and not span.scores for span in batch.spans)
        spans = order(batch.spans)
        self._specials.begin(spans, self._sampled)
        if is_decode:
            place_of = {span.arrival: row for row, span in enumerate(spans) if span.draw is not None}
            self._launch_decodes(spans)
            count = len(spans)
        else:
            place_of = places_of(spans)
            self._launch_mixed(spans, self._sampled, 0)
            count = sum(len(span.drawn) for span in spans)
        places = [place_of[span.arrival] + index for span in batch.spans for index in range(len(span.drawn))]
        left, drawn_scores = self._specials.take()
        scored, self._scored = self._scored, []
        finish = partial(self._finish, left, count, self._ring.index)
        spans_scored = batch.spans if scored else ()
        self._previous = CudaFlight(finish, places, drawn_scores, place_of, spans_scored, scored)
        if not left:
            self._previous.launch_rest()
        return self._previous

    @torch.inference_mode()
    def _finish(self, left: Sequence[Callable[[], None]], count: int, ring_index: int) -> Callable[[], list[int]]:
        """Launches the draws that are left, and the copy of all drawn tokens to the host."""
        for launch_draws in left:
            launch_draws()
        self._group.tell(self._sampled)
        fetched = self._ring.fetch(self._sampled[:count], ring_index)
        return partial(wait_for, fetched, self._clock.told(self._ring.arrival(ring_index)))

    def rehearse(self) -> None:
        """Runs each kind of step once, so that no kernel is compiled while a request waits."""
        plain, cut = Sampling(max_tokens=1), Sampling(max_tokens=1, top_k=2, top_p=0.5, min_p=0.1)
        adjusted = replace(cut, repetition_penalty=1.1, frequency_penalty=0.1, logprobs=1, logit_bias=((0, 1.0),))
        counts = [0, 3, *tuning.decode_counts(), self._slots.num_slots - 1]
        for count in sorted({count for count in counts if count < self._slots.num_slots}):
            spans = [_rehearsed(index, 1, plain) for index in range(count)]
            self._rehearse_mixed([*spans, _rehearsed(count, 2, cut)])
        self._rehearse_mixed([_rehearsed(0, 2, adjusted), _rehearsed(1, 2, plain)])
        self.run(Batch((_rehearsed(0, 2, plain),)))
        self._slots.forget()
        self._sampler.rehearse_masks(self._model.dtype)
        if not self._group.is_cut:
            self._rehearse_decodes()
        if self._has_runs and not self._group.is_cut:
            self._rehearse_runs()
        if self._adapted is not None:
            self._rehearse_adapted(self._adapted)

    @torch.inference_mode()
    def _rehearse_mixed(self, spans: list[Span]) -> None:
        """Launches a step as it is computed without a graph's shapes: those have no kernels for decodes."""
        self._launch_mixed(spans, self._sampled.clone(), 0)
        self._specials.launch_left()
        self._specials.take()

    @torch.inference_mode()
    def _rehearse_decodes(self) -> None:
        """Launches a step of decodes of each size, on padding: its kernels differ from those of mixed steps."""
        self._words.copy_(self._padding)
        for size in self._sizes:
            self._compute_decodes(size)

    @torch.inference_mode()
    def _rehearse_runs(self) -> None:
        """Launches a step of short runs for each shape of its attention, on padding."""
        for size in tuning.run_sizes():
            self._compute_runs(send(self._padded(GraphKey("runs", size), {}), self.device))

    @torch.inference_mode()
    def _rehearse_adapted(self, adapted: AdaptedInputs) -> None:
        """Launches decodes and a chunk as if some row had an adapter."""
        for num_pages in (1, MOST_PAGES):
            adapted.send([], num_pages)
            for size in [size for size in self._sizes if size in (1, 4)]:
                self._compute_decodes(size, num_pages)
            padding = adapted.chunk_shape(64, num_pages, self._model.queries_per_tile).pad({}, self._slots.spare_slot)
            self._compute_chunks(send(padding, self.device), 0, self._sampled, self._sampled)

    def capture(self) -> None:
        """Records the CUDA graph of each number of rows."""
        while not self._plan.is_done:
            self.capture_next()

    def capture_largest(self) -> None:
        """Records the largest graphs, whose memory the others share; ``capture_next`` records these."""
        for _ in self._plan.largest:
            self.capture_next()

    @torch.inference_mode()
    def capture_next(self) -> bool:
        """Records one of the missing graphs, which steps do without until then; returns whether more are missing."""
        key = self._plan.take()
        if key is None or self.device.type != "cuda" or not self._group.records:
            return False
        if self._previous is not None:
            self._previous.launch_rest()  # a graph is recorded with the inputs that its draws need
        try:
            if key.kind == "decodes":
                if key.num_pages and self._adapted is not None:
                    self._adapted.send([], key.num_pages)
                self._graphs[key] = self._record(partial(self._compute_decodes, key.size, key.num_pages))
            else:
                self._chunk_graphs[key] = self._record_chunks(key)
        except torch.OutOfMemoryError:
            if self._group.is_cut:
                raise  # the other ranks would go on
            logger.warning(
                "no memory for more CUDA graphs: steps without one are launched kernel by kernel",
                extra={"axon_event": "engine.graphs_full"},
            )
            self._plan.give_up()
        return not self._plan.is_done

    def _padded(self, key: GraphKey, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """The arrays of a step with chunks in the shapes of its graph."""
        shape = self._run_shapes[key.size] if key.kind == "runs" else self._chunk_shapes[key.size]
        if key.num_pages and self._adapted is not None:
            shape = self._adapted.chunk_shape(key.size, key.num_pages, self._model.queries_per_tile)
        return shape.pad(arrays, self._slots.spare_slot)

    def _record_chunks(self, key: GraphKey) -> ChunkGraph:
        padding = self._padded(key, {})
        words = torch.zeros(layout(padding)[1], dtype=torch.int32, device=self.device)
        inputs = send(padding, self.device, words)
        compute = partial(self._compute_chunks, inputs, 0, self._sampled, self._sampled)
        if key.kind == "runs":
            compute = partial(self._compute_runs, inputs)
        graph, logits = self._record(compute)
        return ChunkGraph(words, inputs, graph, logits)

    def _record(self, compute: Callable[[], torch.Tensor]) -> tuple[Any, torch.Tensor]:
        """Records what ``compute`` launches, after running it once on padding; a step in flight is not disturbed."""
        sampled = self._sampled.clone()  # the next step's placeholders stand for these
        self._words.copy_(self._padding)
        graph, logits = record(compute, stream=self._recording, pool=self._pool)
        self._pool = graph.pool()
        self._sampled.copy_(sampled)
        return graph, logits

    def _launch_decodes(self, spans: Sequence[Span]) -> None:
        count = len(spans)
        size = next(size for size in self._sizes if size >= count)
        views = self._ring.views
        packed = self._decodes.write(views, spans, self._slots, self._latest)
        self._decodes.pad(views, count, size, self._slots)
        self._write_tables(packed)
        self._words.copy_(self._ring.staged, non_blocking=True)
        key = GraphKey("decodes", size, self._num_pages(spans))
        if key.num_pages and self._adapted is not None:
            self._adapted.send(spans, key.num_pages)
        if key in self._graphs:
            graph, logits = self._graphs[key]
            graph.replay()
        else:
            self._plan.miss(key)
            logits = self._compute_decodes(size, key.num_pages)
        rows = drawn_rows(spans, packed.slots, all_rows=True)
        self._specials.draw(logits, rows, self._inputs, self._sampled, self._previous, 0)

    def _num_pages(self, spans: Sequence[Span]) -> int:
        return self._adapted.num_pages(spans) if self._adapted is not None else 0

    def _compute_decodes(self, size: int, num_pages: int = 0) -> torch.Tensor:
        inputs = self._inputs
        if num_pages and self._adapted is not None:
            inputs = inputs | self._adapted.decodes(size, num_pages)
        logits = self._model.decode(inputs, size, self._sampled, self._kv)
        temperatures, numbers = inputs["inverse_temperatures"], inputs["numbers"]
        if self._group.share.leads:
            self._sampler.draw(logits, temperatures, numbers, self._sampled, pdl=self._pdl)
        return logits

    def _launch_mixed(self, spans: list[Span], previous: torch.Tensor, first_place: int) -> None:
        """Computes the step; if memory does not suffice, in halves, with the same results."""
        num_tokens, num_scored = sum(len(span.token_ids) for span in spans), len(self._scored)
        if self._most_tokens is None or num_tokens <= self._most_tokens:
            try:
                self._compute_mixed(spans, previous, first_place)
                return
            except torch.OutOfMemoryError:
                if self._group.is_cut:
                    raise  # the other ranks would not halve the step
                torch.cuda.empty_cache()
                self._slots.forget()
                del self._scored[num_scored:]
                self._most_tokens = max(1, num_tokens // 2)
        halves = halve(spans)
        if halves is None:
            raise torch.OutOfMemoryError("the GPU has no memory for a step of even one token")
        if previous is self._sampled:
            previous = self._sampled.clone()
        self._launch_mixed(order(halves[0]), previous, first_place)
        self._specials.launch_left()
        first_place += sum(len(span.drawn) for span in halves[0])
        self._launch_mixed(order(halves[1]), previous, first_place)

    def _compute_mixed(self, spans: list[Span], previous: torch.Tensor, first_place: int) -> None:
        sampled = self._sampled[first_place:]
        key = self._mixed_key(spans) if previous is self._sampled else None
        per_tile = tuning.RUN_QUERIES if key is not None and key.kind == "runs" else self._model.queries_per_tile
        mixed, packed = pack_mixed(spans, self._slots, self._latest, per_tile, as_chunks=key is not None)
        arrays = mixed.arrays
        if self._adapted is not None and self._num_pages(spans):
            arrays |= self._adapted.chunks(spans)
        arrays = arrays if key is None else self._padded(key, arrays)
        self._write_tables(packed)
        if key is not None and (recorded := self._chunk_graphs.get(key)):
            inputs, logits = recorded.inputs, recorded.logits
            send(arrays, self.device, recorded.words)
            recorded.graph.replay()
        else:
            inputs = send(arrays, self.device)
            if key is not None and key.kind == "runs":
                logits = self._compute_runs(inputs)
            else:
                logits = self._compute_chunks(inputs, mixed.num_decodes, previous, sampled, spans)
        rows = drawn_rows(spans, packed.slots, all_rows=False)
        self._specials.draw(logits, rows, inputs, sampled, self._previous, first_place)

    def _mixed_key(self, spans: Sequence[Span]) -> GraphKey | None:
        """The graph for these spans, recorded or not; None if they are computed without padding.

        It depends on the spans alone: with other shapes their sums would be rounded otherwise.
        """
        key = graph_key(
            spans, self._chunk_sizes, self._num_pages(spans), runs=not self._group.is_cut, drafts=self._drafts
        )
        if key is None:
            return None
        if key in self._chunk_graphs:
            return key
        self._plan.miss(key)
        return key if self._most_tokens is None else None  # padding is not for a device that is short of memory

    def _compute_chunks(
        self,
        inputs: dict[str, torch.Tensor],
        num_decodes: int,
        previous: torch.Tensor,
        sampled: torch.Tensor,
        spans: Sequence[Span] = (),
    ) -> torch.Tensor:
        """Draws a token for each drawn row, whose logits it returns, and scores the spans' prompt tokens."""
        hidden = self._model.chunks(inputs, num_decodes, previous, self._kv)
        num_drawn, leads = len(inputs["drawn_rows"]), self._group.share.leads
        logits = self._model.logits(hidden[:num_drawn]) if num_drawn else hidden[:0]
        if num_drawn and leads:
            temperatures, numbers = inputs["inverse_temperatures"], inputs["numbers"]
            self._sampler.draw(logits, temperatures, numbers, sampled, pdl=False)
        if "scored_rows" in inputs:
            scored = score_rows(spans, hidden[num_drawn:], inputs, self._model.logits, leads=leads)
            self._scored += [scored] if scored else []
        return logits

    def _compute_runs(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Draws a token for each drawn row of short runs, and returns their logits."""
        logits = self._model.runs(inputs, self._sampled, self._kv)
        self._sampler.draw(logits, inputs["inverse_temperatures"], inputs["numbers"], self._sampled, pdl=self._pdl)
        return logits

    @property
    def _latest(self) -> Mapping[int, int]:
        return self._previous.place_of if self._previous else {}

    def _write_tables(self, packed: Packed) -> None:
        self._clock.begin()
        if packed.new_places:
            enter_blocks(self._kv, packed)


def _rehearsed(index: int, length: int, sampling: Sampling) -> Span:
    """A span of a made-up sequence in block 0, which nobody holds yet."""
    seen = (0,) if sampling.penalises_output else ()
    draw = Draw(sampling=sampling, seed=0, choice=0, position=0, prompt_ids=seen, output_ids=seen)
    return Span(id="", first=0, token_ids=(0,) * length, block_ids=(0,), draw=draw, arrival=-2 - index)
