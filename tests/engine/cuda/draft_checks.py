"""What is promised of drafts on a GPU, as plain functions; needs no test runner.

python -m tests.engine.cuda.draft_checks        on a machine with a GPU; prints each, and how many failed

All engines have one shape of model and compute in float32, where every way through the kernels gives the same tokens:
so kernels are compiled once.
"""

import gc
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from axon.engine.engine import Engine
from axon.engine.protocol.messages import Add, Counters
from axon.engine.schedule.limits.controller import FixedController, StepLimits
from axon.engine.schedule.limits.device_drafts import DeviceDrafts
from axon.engine.schedule.limits.feedback_controller import FeedbackController
from tests.engine.builders import FREE_DRAFTS, make_add, make_tiny_llama, run_exactly, run_to_end
from tests.engine.cuda.checks import run_checks
from tests.engine.cuda.driving import SAMPLINGS, Folders, on_gpu
from tests.engine.cuda.shapes import WIDE

ROOMY: dict[str, Any] = {"block_size": 64, "max_batch_tokens": 256, "max_sequences": 40, "kv_memory_bytes": 1 << 27}
SHAPE = WIDE["llama"]
PLAIN = StepLimits(max_prefill_tokens=256)
LOOKUP = replace(PLAIN, draft_price=0.05, max_drafts=192)
MODEL = replace(PLAIN, draft_costs=FREE_DRAFTS, max_drafts=192)
BOTH = replace(LOOKUP, draft_costs=FREE_DRAFTS)


@cache
def engine_with(draft: Path, folder: Path) -> Engine:
    """One engine for all checks: each opens in seconds. What it drafts is set before each run."""
    return on_gpu(folder, draft_model=str(draft), **ROOMY)


def run(engine: Engine, limits: StepLimits, adds: list[Add]) -> tuple[dict[str, list[int]], Counters]:
    """The tokens of each sequence with these drafts in every step, and the counters' growth by drafts."""
    engine._controller = FixedController(limits)
    before = engine.step().counters
    outputs = run_to_end(engine, adds)
    after = engine.step().counters
    assert after.blocks_used == 0, "KV is freed"
    names = ("drafted", "accepted", "model_drafted", "model_accepted")
    return outputs, replace(after, **{name: getattr(after, name) - getattr(before, name) for name in names})


def make_adds(count: int, sampling: dict[str, Any], *, max_tokens: int = 24, first_seed: int = 0) -> list[Add]:
    """Prompts that repeat themselves, so that lookup finds something."""
    random = np.random.default_rng(7)
    prompts = [(random.integers(0, 256, 3 + index % 9).tolist() * 40)[: 20 + 7 * index] for index in range(count)]
    return [
        make_add(str(index), prompt=prompt, max_tokens=max_tokens, seed=first_seed + index, ignore_eos=True, **sampling)
        for index, prompt in enumerate(prompts)
    ]


@cache
def other_folder() -> Path:
    """A draft model of the same shape with fewer layers and other weights."""
    return make_tiny_llama(Path(tempfile.mkdtemp()) / "other", seed=8, **SHAPE | {"num_hidden_layers": 1})


def said(name: str, counters: Counters) -> str:
    return (
        f"  {name}: lookup {counters.accepted} of {counters.drafted}, "
        f"model {counters.model_accepted} of {counters.model_drafted}"
    )


def runs_attend_as_the_plain_way(make_folder: Folders) -> None:
    from tests.engine.cuda.attention import compare

    for dtype, block_size in ((torch.bfloat16, 64), (torch.float32, 16)):
        compare(make_folder(SHAPE), torch.device("cuda"), dtype, block_size)


def drafts_change_no_token(make_folder: Folders) -> None:
    """Greedy, sampled, cut and penalised with log probabilities; by lookup, by the same model, by another one."""
    folder = make_folder(SHAPE)
    same, other = engine_with(folder, folder), engine_with(other_folder(), folder)
    ways = {"lookup": (same, LOOKUP), "same": (same, MODEL), "other": (other, MODEL), "both": (other, BOTH)}
    for name in ("greedy", "warm", "cut", "penalised"):
        adds = make_adds(6, SAMPLINGS[name])
        plain, _ = run(same, PLAIN, adds)
        for way, (engine, limits) in ways.items():
            outputs, counters = run(engine, limits, adds)
            print(said(f"{name}, {way}", counters))
            assert outputs == plain, (way, name)
            assert run(engine, limits, adds[2:3])[0]["2"] == plain["2"], (way, name, "alone")
            if way == "same":
                assert counters.model_accepted == counters.model_drafted > 0, "it draws by the same number"
            elif way == "other":
                assert counters.model_drafted > 0


def graphs_of_runs_change_no_token(make_folder: Folders) -> None:
    folder, adds = make_folder(SHAPE), make_adds(9, SAMPLINGS["warm"])
    engine = engine_with(folder, folder)
    plain, _ = run(engine, PLAIN, adds)
    assert run(engine, BOTH, adds)[0] == plain, "before all are recorded"
    while engine.tend():
        pass
    assert run(engine, BOTH, adds)[0] == plain, "once they are recorded"
    assert run(engine, MODEL, adds)[0] == plain, "once they are recorded"
    model: Any = engine._draft_model
    runners: list[Any] = [engine._runner, model._runner]
    recorded = [len(runner._graphs) + len(runner._chunk_graphs) for runner in runners]
    print(f"  graphs of target and draft model: {recorded}")
    assert min(recorded) > 20


def grammars_penalties_and_replays_go_with_drafts(make_folder: Folders) -> None:
    from llguidance import LLMatcher

    from axon.engine.grammar.grammars import Grammars
    from axon.engine.grammar.vocabulary import byte_vocabulary
    from tests.engine.cuda.grammar import EOS_ID, REGEX

    folder = make_folder(SHAPE)
    engine = engine_with(folder, folder)
    engine._open_grammars = partial(Grammars, partial(byte_vocabulary, size=SHAPE["vocab_size"], eos_id=EOS_ID))
    bound: dict[str, Any] = {"grammar": LLMatcher.grammar_from_regex(REGEX), "max_tokens": 24}
    adds = [make_add(f"g{n}", prompt=[n + 1, 2, 3], seed=n, **SAMPLINGS["warm"], **bound) for n in range(4)]
    adds += [replace(add, id=f"f{add.id}") for add in make_adds(3, SAMPLINGS["penalised"])]
    engine._controller = FixedController(PLAIN)
    expected = run_exactly(engine, adds)
    engine._controller = FixedController(BOTH)
    got = run_exactly(engine, adds)
    for add in adds:
        ours, theirs = got[add.id], expected[add.id]
        assert [each.token for each in ours] == [each.token for each in theirs], add.id
        for one, other in zip(ours, theirs, strict=True):
            assert (one.logprob is None) == (other.logprob is None)
            assert abs((one.logprob or 0) - (other.logprob or 0)) < 1e-3, add.id
        replay = replace(add, output_ids=[each.token for each in theirs[:5]])
        assert run_to_end(engine, [replay])[add.id] == [each.token for each in theirs[5:]], (add.id, "replayed")
    assert got["g0"][-1].token == EOS_ID


def sampled_tokens_have_the_same_distribution(make_folder: Folders) -> None:
    """Chi-square of the tokens of many seeds, with drafts and without, with seeds of their own."""
    engine = engine_with(other_folder(), make_folder(SHAPE))
    sampling: dict[str, Any] = {"temperature": 0.5, "top_k": 12, "ignore_eos": True}
    counts: list[Counter[int]] = []
    for first_seed, limits in ((0, PLAIN), (10_000, BOTH)):
        adds = [
            make_add(str(n), prompt=[5, 6, 7, 5, 6, 7, 5, 6], max_tokens=4, seed=first_seed + n, **sampling)
            for n in range(800)
        ]
        outputs, counters = run(engine, limits, adds)
        counts.append(Counter(1024 * place + id for ids in outputs.values() for place, id in enumerate(ids)))
    print(said("drafting", counters))
    assert counters.model_drafted > 100
    first, second = counts
    keys = [key for key in {*first, *second} if first[key] + second[key] >= 10]
    rest = [sum(each.values()) - sum(each[key] for key in keys) for each in counts]
    pairs = [(first[key], second[key]) for key in keys] + ([(rest[0], rest[1])] if sum(rest) else [])
    statistic = sum((a - b) ** 2 / (a + b) for a, b in pairs)
    freedom = max(1, len(pairs) - 4)  # four places, each with as many tokens in both
    limit = freedom * (1 - 2 / (9 * freedom) + 3.7 * (2 / (9 * freedom)) ** 0.5) ** 3  # p of about 1e-4
    print(f"  chi-square {statistic:.1f} at {freedom} degrees of freedom; 1 in 10,000 is above {limit:.1f}")
    assert statistic < limit


def memory_of_both_is_planned(make_folder: Folders) -> None:
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    used = 1 - free / total
    fraction = used + 0.15
    changes = ROOMY | {"kv_memory_bytes": 0, "gpu_memory_fraction": fraction}
    engine = on_gpu(make_folder(SHAPE), draft_model=str(other_folder()), **changes)
    free, total = torch.cuda.mem_get_info()
    print(f"  {engine.ready().num_blocks} blocks; {1 - free / total:.3f} of the GPU, and {fraction:.3f} was allowed")
    assert used + 0.1 < 1 - free / total < fraction + 0.02
    assert len(run(engine, BOTH, make_adds(4, SAMPLINGS["greedy"]))[0]) == 4
    engine.close()


def memory_is_flat_over_requests(make_folder: Folders) -> None:
    """With the engine's own controller, for requests that end, are aborted and come again; it changes no token."""
    folder = make_folder(SHAPE)
    engine = engine_with(folder, folder)
    long = make_adds(2, SAMPLINGS["greedy"], max_tokens=200)
    plain, _ = run(engine, PLAIN, long)
    drafts = DeviceDrafts(draft_tokens=4)
    engine._controller = FeedbackController(max_prefill_tokens=256, slo_s=1.0, drafts=drafts)
    assert run_to_end(engine, long) == plain, "whatever it decides"

    def ask(count: int, first: int) -> None:
        adds = [replace(add, id=f"{first}.{add.id}") for add in make_adds(count, SAMPLINGS["cut"], first_seed=first)]
        for add in adds:
            engine.add(add)
        engine.step()
        engine.abort([adds[0].id])
        while engine.has_work:
            engine.step()
        engine.check()

    for number in range(3):
        ask(20, 1000 * number)
    gc.collect()
    torch.cuda.synchronize()
    before, objects = torch.cuda.memory_allocated(), len(gc.get_objects())
    for number in range(3, 18):
        ask(20, 1000 * number)
    gc.collect()
    torch.cuda.synchronize()
    grown, made = torch.cuda.memory_allocated() - before, len(gc.get_objects()) - objects
    counters = engine.step().counters
    print(f"  300 requests: {grown} bytes of the GPU and {made} objects more;{said(' in all', counters)}")
    assert counters.blocks_used == 0
    assert grown < 1 << 20
    assert made < 2000


DRAFT_CHECKS: list[Callable[[Folders], None]] = [
    runs_attend_as_the_plain_way,
    drafts_change_no_token,
    graphs_of_runs_change_no_token,
    grammars_penalties_and_replays_go_with_drafts,
    sampled_tokens_have_the_same_distribution,
    memory_is_flat_over_requests,
    memory_of_both_is_planned,
]


if __name__ == "__main__":
    sys.exit(run_checks(DRAFT_CHECKS))
