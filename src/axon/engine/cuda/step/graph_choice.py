"""Which CUDA graph a step with more than decodes takes, by its spans alone. Records none, launches none."""

from collections.abc import Sequence

from axon.engine.batch import Span
from axon.engine.cuda import tuning
from axon.engine.cuda.step.graph_plan import GraphKey
from axon.engine.cuda.step.step_arrays import Chunks

LONGEST_RUN = 32
"""The most tokens of a sequence that count as a short run."""


def graph_key(
    spans: Sequence[Span], chunk_sizes: Sequence[int], num_pages: int, *, runs: bool, drafts: bool = False
) -> GraphKey | None:
    """The graph of a step; None if it is computed without one. ``num_pages``: of adapters, 0 for none.

    ``runs``: whether short runs may be computed as such, ``drafts``: also where no span has drafts.
    """
    num_tokens = sum(len(span.token_ids) for span in spans)
    if any(span.scores for span in spans):
        return None
    if runs and not num_pages and (drafts or any(span.drafts for span in spans)):
        is_short = all(len(span.token_ids) <= LONGEST_RUN for span in spans)
        size = next((size for size in tuning.run_ladder() if size >= num_tokens), None)
        if is_short and size is not None:
            return GraphKey("runs", size)
    size = next((size for size in chunk_sizes if size >= num_tokens), None)
    num_draws = sum(len(span.drawn) for span in spans)
    if size is None or max(len(spans), num_draws) > Chunks.MAX_SPANS:
        return None
    return GraphKey("chunks", size, num_pages)
