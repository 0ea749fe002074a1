"""What is promised of the engine on a GPU, as plain functions; needs no test runner.

python -m tests.engine.cuda.checks        on a machine with a GPU; prints each, and how many failed
"""

import json
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from axon.domain.sampling import Sampling
from axon.engine.backend import open_backend
from axon.engine.config import for_device
from axon.engine.core import EngineCore
from axon.engine.load.architecture import read_architecture
from axon.engine.protocol.messages import Add, Emitted
from axon.engine.schedule.blocks import BlockPool
from axon.engine.schedule.scheduler import Scheduler
from tests.engine.builders import RELATIVES, make_add, make_tiny_llama, run_to_end, with_config
from tests.engine.cuda.driving import SAMPLINGS, Folders, emit, make_adds, on_cpu, on_gpu
from tests.engine.cuda.few_bits import FEW_BITS
from tests.engine.cuda.shapes import WIDE


def greedy_tokens_equal_those_of_transformers(make_folder: Folders) -> None:
    transformers: Any = import_module("transformers")
    for name, changes in {**RELATIVES, **WIDE}.items():
        folder = make_folder(changes)
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).cuda().eval()
        adds = make_adds(9, SAMPLINGS["greedy"], max_tokens=24)
        wide = {"block_size": 64, "max_batch_tokens": 256, "kv_memory_bytes": 1 << 26} if name in WIDE else {}
        outputs = run_to_end(on_gpu(folder, **wide), adds)
        for add in adds:
            ids = torch.tensor([add.prompt_ids]).cuda()
            theirs = model.generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=24, do_sample=False, eos_token_id=None,
                pad_token_id=0,
            )  # fmt: skip
            assert outputs[add.id] == theirs[0, ids.shape[1] :].tolist(), (name, add.id)


def tokens_equal_those_of_the_cpu(make_folder: Folders) -> None:
    for shape in ({}, RELATIVES["qwen2"], RELATIVES["qwen3"]):
        folder = make_folder(shape)
        for name, sampling in SAMPLINGS.items():
            adds = make_adds(6, sampling)
            assert run_to_end(on_gpu(folder), adds) == run_to_end(on_cpu(folder), adds), (shape, name)


def logprobs_equal_those_of_the_cpu(make_folder: Folders) -> None:
    folder = make_folder({})
    add = make_add(prompt=20, max_tokens=6, logprobs=3, temperature=0.7, ignore_eos=True)
    ours, theirs = (emit(engine, [add]) for engine in (on_gpu(folder), on_cpu(folder)))
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine.token, [id for id, _ in mine.top]) == (other.token, [id for id, _ in other.top])
        assert mine.logprob is not None
        assert other.logprob is not None
        assert abs(mine.logprob - other.logprob) < 1e-3


def many_rows_with_penalties_are_each_as_alone(make_folder: Folders) -> None:
    folder = make_folder(WIDE["llama"])
    config: dict[str, Any] = {"max_sequences": 128, "max_batch_tokens": 2048, "kv_memory_bytes": 1 << 28}
    engine = on_gpu(folder, **config)
    for more in ({}, {"temperature": 0.0}, {"temperature": 0.0, "min_tokens": 4}):
        adds = make_adds(100, SAMPLINGS["penalised"] | more, max_tokens=8)
        plain = [replace(add, id=f"p{add.id}", sampling=Sampling(max_tokens=8, ignore_eos=True)) for add in adds[:20]]
        together = {each.id: each for each in _last_of(engine, [*adds, *plain])}
        assert len(together) == 120
        for add in adds[::9] + plain[::9]:
            [alone] = _last_of(engine, [add])
            mine = together[add.id]
            assert (mine.token, [id for id, _ in mine.top]) == (alone.token, [id for id, _ in alone.top]), add.id
            assert abs((mine.logprob or 0.0) - (alone.logprob or 0.0)) < 1e-4, add.id


def _last_of(engine: EngineCore, adds: list[Add]) -> list[Emitted]:
    """The last token of each sequence, which depends on all before it."""
    for add in adds:
        engine.add(add)
    emitted = dict[str, Emitted]()
    while engine.has_work:
        emitted |= {each.id: each for each in engine.step().emitted}
    return list(emitted.values())


def prompts_have_the_logprobs_of_the_cpu(make_folder: Folders) -> None:
    from tests.engine.cuda.scores import compare, compare_dtypes

    for name, shape in {"tiny": {}, "qwen3": RELATIVES["qwen3"], "wide": WIDE["qwen3"]}.items():
        compare(make_folder(shape), on_gpu, on_cpu, name)
    compare_dtypes(make_folder(WIDE["llama"]), on_gpu)


def prompts_have_the_same_logprobs_over_ranks(make_folder: Folders) -> None:
    from tests.engine.cuda import scores

    scores.compare_ranks(make_folder(WIDE["llama"]), on_gpu, open_in)


def chunked_cached_and_batched_change_nothing(make_folder: Folders) -> None:
    for shape in ({}, WIDE["llama"]):
        folder = make_folder(shape)
        roomy: dict[str, Any] = {"kv_memory_bytes": 1 << 27}
        for name in ("greedy", "cut", "penalised"):
            adds = make_adds(6, SAMPLINGS[name])
            whole = run_to_end(on_gpu(folder, max_batch_tokens=2048, **roomy), adds)
            assert run_to_end(on_gpu(folder, max_batch_tokens=13, **roomy), adds) == whole, ("chunked", name)
            engine = on_gpu(folder, block_size=16, **roomy)
            assert run_to_end(engine, adds) == whole, ("blocks of 16", name)
            assert run_to_end(engine, adds) == whole, ("cached", name)
            alone = on_gpu(folder, block_size=64, **roomy)
            assert {add.id: run_to_end(alone, [add])[add.id] for add in adds} == whole, ("alone", name)


def replayed_and_parked_change_nothing(make_folder: Folders) -> None:
    folder = make_folder({})
    for name in ("greedy", "cut", "penalised"):
        sampling = SAMPLINGS[name]
        [add] = make_adds(1, sampling)
        whole = run_to_end(on_gpu(folder), [add])[add.id]
        for num_emitted in (1, 11):
            replay = make_add(
                add.id, prompt=add.prompt_ids, output=whole[:num_emitted], max_tokens=12, ignore_eos=True, **sampling
            )
            assert run_to_end(on_gpu(folder), [replay])[add.id] == whole[num_emitted:], name
        adds = [
            make_add(str(index), prompt=[index] * 20, max_tokens=30, seed=index, ignore_eos=True, **sampling)
            for index in range(6)
        ]
        roomy = on_gpu(folder)
        block_bytes = with_config().kv_memory_bytes // roomy.ready().num_blocks
        tight = on_gpu(folder, kv_memory_bytes=block_bytes * 36)
        outputs = run_to_end(tight, adds)
        assert tight.step().counters.preemptions > 0
        assert outputs == run_to_end(roomy, adds), name


def a_step_that_finds_no_memory_is_computed_in_halves(make_folder: Folders) -> None:
    from tests.engine.cuda.scores import short_of_memory

    folder, adds = make_folder({}), make_adds(6, SAMPLINGS["warm"])
    assert run_to_end(short_of_memory(on_gpu(folder)), adds) == run_to_end(on_cpu(folder), adds)


def memory_is_filled_to_the_fraction(make_folder: Folders) -> None:
    torch.cuda.empty_cache()
    engine = on_gpu(make_folder({}), kv_memory_bytes=0, gpu_memory_fraction=0.2, block_size=16)
    free, total = torch.cuda.mem_get_info()
    used = 1 - free / total
    assert 0.1 < used < 0.25, used
    assert engine.ready().num_blocks > 1000
    assert len(run_to_end(engine, make_adds(4, SAMPLINGS["greedy"]))) == 4


def bfloat16_agrees_with_float32(make_folder: Folders) -> None:
    """Top-1 and the largest difference of a logprob, through chunks, many decodes and one decode."""
    for name, changes in WIDE.items():
        folder = make_folder(changes | {"num_hidden_layers": 4})
        random = np.random.default_rng(5)
        prompts = [random.integers(0, 1000, 65).tolist() for _ in range(48)]
        adds = [make_add(str(index), prompt=prompt, max_tokens=1, logprobs=8) for index, prompt in enumerate(prompts)]
        config: dict[str, Any] = {"block_size": 64, "max_batch_tokens": 8192, "max_sequences": 48}
        exact = emit(on_gpu(folder, kv_memory_bytes=1 << 28, **config), adds)
        rough = on_gpu(folder, dtype="bfloat16", kv_memory_bytes=1 << 28, **config)
        ways = {"chunks": emit(rough, adds), "decodes": emit(rough, adds)}
        ways["few"] = [each for first in range(0, 48, 8) for each in emit(rough, adds[first : first + 8])]
        ways["alone"] = [each for add in adds for each in emit(rough, [add])]
        for way, emitted in ways.items():
            by_id = {each.id: each for each in emitted}
            same = sum(by_id[each.id].token == each.token for each in exact) / len(exact)
            gaps = [
                abs(logprob - dict(by_id[each.id].top)[id])
                for each in exact
                for id, logprob in each.top
                if id in dict(by_id[each.id].top)
            ]
            worst, usual = max(gaps), float(np.mean(gaps))
            print(f"  {name} {way}: top-1 {same:.3f}, largest logprob difference {worst:.3f}, mean {usual:.4f}")
            assert same > 0.8, (name, way)


def draws_of_all_kinds_in_one_step_equal_those_of_the_host(make_folder: Folders) -> None:
    from tests.engine.cuda.special_draws import compare

    compare()


def attention_agrees_with_the_plain_one(make_folder: Folders) -> None:
    from tests.engine.cuda.attention import compare

    for dtype, block_size in ((torch.bfloat16, 64), (torch.bfloat16, 16), (torch.float32, 16)):
        compare(make_folder(WIDE["llama"]), torch.device("cuda"), dtype, block_size)


def a_group_of_one_over_nccl_changes_nothing(make_folder: Folders) -> None:
    """Every sum, gather and embedding of a group, through NCCL and inside the graphs; with one rank each is whole."""
    from axon.engine.parallel.group import TorchGroup, make_store
    from axon.engine.parallel.partition import Share

    for name, changes in {"tiny": {}, **WIDE}.items():
        folder = make_folder(changes)
        config: dict[str, Any] = {"block_size": 64, "max_batch_tokens": 256, "kv_memory_bytes": 1 << 26}
        adds = make_adds(6, SAMPLINGS["warm"]) + make_adds(3, SAMPLINGS["penalised"])
        adds = [replace(add, id=str(index)) for index, add in enumerate(adds)]
        whole = run_to_end(on_gpu(folder, **config), adds)
        group = TorchGroup(Share(0, 1), torch.device("cuda", 0), lambda: make_store("127.0.0.1"), nccl=True)
        try:
            assert run_to_end(open_in(group, folder, **config), adds) == whole, name
            assert group.traffic.num_sums > 0
        finally:
            group.close()


def two_ranks_on_one_gpu_say_what_one_says(make_folder: Folders) -> None:
    """Over Gloo, since NCCL wants a GPU for each rank; so without graphs."""
    for name, changes in WIDE.items():
        folder = make_folder(changes)
        config: dict[str, Any] = {"block_size": 64, "max_batch_tokens": 256, "kv_memory_bytes": 1 << 26}
        adds = make_adds(6, SAMPLINGS["greedy"], max_tokens=8)
        whole = run_to_end(on_gpu(folder, **config), adds)
        engine = on_gpu(folder, tensor_parallel=2, **config)
        try:
            assert engine.ready().kernel == "cuda-float32-tp2"
            assert run_to_end(engine, adds) == whole, name
        finally:
            engine.close()


def open_in(group: Any, folder: Path, **changes: Any) -> EngineCore:
    """An engine whose model is a part in the group."""
    config = replace(for_device(with_config(**changes), "cuda"), dtype="float32")
    opened = open_backend(config, folder, read_architecture(folder), max_model_len=512, group=group)
    scheduler = Scheduler(
        BlockPool(opened.num_blocks, config.block_size),
        max_sequences=config.max_sequences,
        max_batch_tokens=config.max_batch_tokens,
        max_model_len=512,
    )
    return EngineCore(scheduler, opened.runner, kernel=opened.kernel, launcher=opened.launcher)


def grammars_are_followed_and_change_nothing_beside_them(make_folder: Folders) -> None:
    from tests.engine.cuda.grammar import compare

    for sampling in SAMPLINGS.values():
        compare(make_folder({}), 272, sampling, with_cpu=True)
        compare(make_folder(WIDE["llama"]), 1024, sampling, with_cpu=False)


def graphs_recorded_between_steps_change_no_token(make_folder: Folders) -> None:
    """Steps without a graph, with one, and those beside which one is recorded."""
    for name, changes in {"tiny": {}, **WIDE}.items():
        folder = make_folder(changes)
        config: dict[str, Any] = {"block_size": 64, "max_batch_tokens": 256, "kv_memory_bytes": 1 << 26}
        adds = make_adds(9, SAMPLINGS["warm"], max_tokens=40)
        late, early = on_gpu(folder, **config), on_gpu(folder, **config)
        while early.tend():
            pass
        assert run_to_end(late, adds) == run_to_end(early, adds), name
        while late.tend():
            pass
        assert run_to_end(late, adds) == run_to_end(early, adds), name


def graphs_are_recorded_beside_garbage(_: Folders) -> None:
    from tests.engine.cuda.recording import record_beside_garbage

    record_beside_garbage()


def the_gpu_is_watched(make_folder: Folders) -> None:
    engine = on_gpu(make_folder({}))
    run_to_end(engine, make_adds(4, SAMPLINGS["greedy"]))
    [gpu] = engine.step().counters.gpus
    free, total = torch.cuda.mem_get_info()
    told, seen = gpu.memory_bytes / 2**30, (total - free) / 2**30
    print(f"  utilization {gpu.utilization}, memory {told:.2f} GiB; torch says {seen:.2f}")
    assert 0 <= gpu.utilization <= 1
    assert 0 < gpu.memory_bytes <= total


CHECKS: list[Callable[[Folders], None]] = [
    attention_agrees_with_the_plain_one,
    tokens_equal_those_of_the_cpu,
    logprobs_equal_those_of_the_cpu,
    many_rows_with_penalties_are_each_as_alone,
    draws_of_all_kinds_in_one_step_equal_those_of_the_host,
    prompts_have_the_logprobs_of_the_cpu,
    chunked_cached_and_batched_change_nothing,
    replayed_and_parked_change_nothing,
    a_step_that_finds_no_memory_is_computed_in_halves,
    bfloat16_agrees_with_float32,
    greedy_tokens_equal_those_of_transformers,
    memory_is_filled_to_the_fraction,
    the_gpu_is_watched,
    a_group_of_one_over_nccl_changes_nothing,
    graphs_recorded_between_steps_change_no_token,
    graphs_are_recorded_beside_garbage,
    two_ranks_on_one_gpu_say_what_one_says,
    prompts_have_the_same_logprobs_over_ranks,
    grammars_are_followed_and_change_nothing_beside_them,
    *FEW_BITS,
]


def make_folders(root: Path) -> Folders:
    """Makes each model once."""
    made: dict[str, Path] = {}

    def make(changes: dict[str, Any]) -> Path:
        key = json.dumps(changes, sort_keys=True)
        if key not in made:
            made[key] = make_tiny_llama(root / str(len(made)), **changes)
        return made[key]

    return make


def run_checks(checks: list[Callable[[Folders], None]]) -> int:
    """Runs every check, or those named on the command line; returns how many failed."""
    passed = failed = 0
    with tempfile.TemporaryDirectory() as root:
        make = make_folders(Path(root))
        for check in checks:
            if sys.argv[1:] and not any(word in check.__name__ for word in sys.argv[1:]):
                continue
            started = time.perf_counter()
            try:
                check(make)
                passed += 1
                print(f"passed {check.__name__} ({time.perf_counter() - started:.1f} s)", flush=True)
            except Exception:
                failed += 1
                print(f"FAILED {check.__name__}\n{traceback.format_exc(limit=-12)[-4500:]}", flush=True)
    print(f"{passed} passed, {failed} failed, {len(checks) - passed - failed} not asked for")
    return failed


if __name__ == "__main__":
    sys.exit(run_checks(CHECKS))
