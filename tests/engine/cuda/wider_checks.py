"""What is promised of adapters and of the newer architectures on a GPU, as plain functions; needs no test runner.

python -m tests.engine.cuda.wider_checks        on a machine with a GPU; prints each, and how many failed
"""

import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from axon.engine.protocol.messages import Add
from tests.engine.adapter_files import adapted, make_adapter, merge
from tests.engine.builders import RELATIVES, make_add, run_to_end
from tests.engine.checkpoints import NEWER, make_checkpoint
from tests.engine.cuda.checks import run_checks
from tests.engine.cuda.driving import SAMPLINGS, Folders, emit, make_adds, on_cpu, on_gpu
from tests.engine.cuda.shapes import WIDE

_WIDE_SIZES: dict[str, Any] = {
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": 1024,
}
WIDER: dict[str, dict[str, Any]] = {
    "mixtral": _WIDE_SIZES,
    "qwen3_moe": _WIDE_SIZES | {"num_experts": 32, "num_experts_per_tok": 4, "moe_intermediate_size": 256},
    "gemma3": _WIDE_SIZES | {"num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256},
    "phi3": _WIDE_SIZES,
    "gpt_oss": _WIDE_SIZES | {"num_local_experts": 16, "num_experts_per_tok": 4, "intermediate_size": 256},
}
"""Sizes that go through the quick kernels too."""
_ROOMY: dict[str, Any] = {"block_size": 64, "max_batch_tokens": 512, "kv_memory_bytes": 1 << 27}


def experts_agree_with_plain_ones(_: Folders) -> None:
    from tests.engine.cuda.experts import compare_all

    compare_all()


def adapters_agree_with_plain_ones(make_folder: Folders) -> None:
    from tests.engine.cuda.low_rank import compare

    device = torch.device("cuda", 0)
    compare(make_folder({}), torch.float32, device)
    compare(make_folder(WIDE["llama"]), torch.bfloat16, device)
    compare(make_folder(WIDE["qwen3"]), torch.bfloat16, device)


def mixtures_say_what_transformers_says(_: Folders) -> None:
    compare_newer([name for name in NEWER if "moe" in name or "mixtral" in name])


def gemma_and_phi_say_what_transformers_says(_: Folders) -> None:
    compare_newer([name for name in NEWER if "gemma" in name or "phi" in name])


def gpt_oss_attends_as_the_plain_way_and_says_what_transformers_says(_: Folders) -> None:
    from tests.engine.cuda.attention import compare

    device = torch.device("cuda", 0)
    with tempfile.TemporaryDirectory() as root:
        compare(make_checkpoint(Path(root) / "small", "gpt_oss"), device, torch.float32, 16)
        compare(make_checkpoint(Path(root) / "wide", "gpt_oss", **_WIDE_SIZES), device, torch.bfloat16, 64)
    compare_newer(["gpt_oss"])


def compare_newer(names: list[str]) -> None:
    """In float32, greedily; together, alone, in small chunks, and with all graphs recorded."""
    for name in names:
        with tempfile.TemporaryDirectory() as root:
            folder = make_checkpoint(Path(root), name)
            adds = make_adds(8, SAMPLINGS["greedy"], max_tokens=24)
            expected = by_transformers(folder, adds)
            engine = on_gpu(folder)
            assert run_to_end(engine, adds) == expected, name
            while engine.tend():
                pass
            alone = {add.id: run_to_end(engine, [add])[add.id] for add in adds}
            assert alone == expected, (name, "alone")
            assert run_to_end(on_gpu(folder, max_batch_tokens=13), adds) == expected, (name, "chunked")


def newer_models_in_bfloat16_stay_near(_: Folders) -> None:
    """As near to float32 as transformers in bfloat16, but for some prompts; by chunks, many decodes and one."""
    transformers: Any = import_module("transformers")
    for name, sizes in WIDER.items():
        with tempfile.TemporaryDirectory() as root:
            folder = make_checkpoint(Path(root), name, **sizes)
            adds = [
                make_add(str(index), prompt=add.prompt_ids, max_tokens=1, ignore_eos=True)
                for index, add in enumerate(make_adds(40, {}, max_prompt=130))
            ]
            exact = by_transformers(folder, adds)
            model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).cuda().eval()
            theirs = [int(model(torch.tensor([add.prompt_ids]).cuda()).logits[0, -1].argmax()) for add in adds]
            usual = sum([token] == exact[add.id] for add, token in zip(adds, theirs, strict=True)) / len(adds)
            engine = on_gpu(folder, dtype="bfloat16", max_sequences=40, **_ROOMY)
            while engine.tend():
                pass
            ways = {"chunks": run_to_end(engine, adds), "cached": run_to_end(engine, adds)}
            ways["alone"] = {add.id: run_to_end(engine, [add])[add.id] for add in adds}
            for way, tokens in ways.items():
                same = sum(tokens[add.id] == exact[add.id] for add in adds) / len(adds)
                print(f"  {name} {way}: top-1 {same:.3f}; transformers in bfloat16 {usual:.3f}")
                assert same >= min(0.9, usual) - 0.15, (name, way)


def adapters_give_the_tokens_of_the_cpu_and_of_merged_models(make_folder: Folders) -> None:
    for shape in ({}, RELATIVES["qwen2"], RELATIVES["qwen3"], WIDE["llama"]):
        base = make_folder(shape)
        with tempfile.TemporaryDirectory() as root:
            folders = make_adapters(Path(root), base)
            room = _ROOMY if shape is WIDE["llama"] else {}
            merged = merge(base, folders[0], Path(root) / "merged")
            plain = make_adds(4, SAMPLINGS["greedy"])
            own = [adapted(add.id, folders[0], prompt=add.prompt_ids, max_tokens=12) for add in plain]
            engine = on_gpu(base, **room)
            assert run_to_end(engine, own) == run_to_end(on_gpu(merged, **room), plain), (shape, "merged")
            for name in ("greedy", "cut", "penalised"):
                adds = with_adapters([None, *folders, folders[0], None, folders[1]], SAMPLINGS[name])
                together = run_to_end(engine, adds)
                if shape is not WIDE["llama"]:
                    assert together == run_to_end(on_cpu(base), adds), (shape, name)
                while engine.tend():
                    pass
                assert run_to_end(engine, adds) == together, (shape, name, "recorded")
                assert {add.id: run_to_end(engine, [add])[add.id] for add in adds} == together, (shape, name, "alone")
            small = on_gpu(base, **room | {"max_batch_tokens": 13})
            assert run_to_end(small, adds) == together, (shape, "chunked")


def adapters_of_partly_turned_heads_and_of_experts(_: Folders) -> None:
    """Phi, whose heads are kept in another order, Gemma, and a mixture of which adapters change attention alone."""
    attention = ("q_proj", "k_proj", "v_proj", "o_proj")
    for name in ("phi3", "gemma3", "qwen3_moe"):
        with tempfile.TemporaryDirectory() as root:
            base = make_checkpoint(Path(root) / "base", name)
            targets: dict[str, Any] = {"targets": attention} if name == "qwen3_moe" else {}
            folder = make_adapter(Path(root) / "own", base, seed=4, rank=6, **targets)
            adds = with_adapters([None, folder, folder, None], SAMPLINGS["greedy"])
            assert run_to_end(on_gpu(base), adds) == run_to_end(on_cpu(base), adds), name


def adapters_come_and_go_under_traffic(make_folder: Folders) -> None:
    base = make_folder({})
    with tempfile.TemporaryDirectory() as root:
        folders = [make_adapter(Path(root) / str(seed), base, seed=seed, rank=4 + 9 * seed) for seed in range(6)]
        adds = with_adapters([*folders, None, *reversed(folders)] * 2, SAMPLINGS["warm"])
        expected = run_to_end(on_gpu(base, adapter_slots=6), adds)
        few = on_gpu(base, adapter_slots=2)
        assert run_to_end(few, adds) == expected
        assert few.step().counters.adapters_dropped >= 4


def adapters_in_bfloat16_stay_near(make_folder: Folders) -> None:
    for name, changes in WIDE.items():
        base = make_folder(changes | {"num_hidden_layers": 4})
        with tempfile.TemporaryDirectory() as root:
            folders = make_adapters(Path(root), base, size=0.05)
            prompts = make_adds(40, {}, max_prompt=130)
            chosen = [None, *folders]
            adds = [
                adapted(add.id, chosen[index % len(chosen)], prompt=add.prompt_ids, max_tokens=1, logprobs=4)
                for index, add in enumerate(prompts)
            ]
            wide = {**_ROOMY, "max_sequences": 40, "kv_memory_bytes": 1 << 28}
            exact = {each.id: each.token for each in emit(on_gpu(base, **wide), adds)}
            engine = on_gpu(base, dtype="bfloat16", **wide)
            ways = {"chunks": emit(engine, adds), "cached": emit(engine, adds)}
            ways["alone"] = [each for add in adds for each in emit(engine, [add])]
            for way, emitted in ways.items():
                same = sum(exact[each.id] == each.token for each in emitted) / len(adds)
                print(f"  {name} {way}: top-1 {same:.3f}")
                assert same > 0.75, (name, way)


def by_transformers(folder: Path, adds: list[Add]) -> dict[str, list[int]]:
    """The greedy tokens of each sequence, in float32."""
    transformers: Any = import_module("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).cuda().eval()
    made: dict[str, list[int]] = {}
    for add in adds:
        ids = torch.tensor([add.prompt_ids]).cuda()
        tokens = model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=add.sampling.max_tokens, do_sample=False,
            eos_token_id=None, pad_token_id=0,
        )  # fmt: skip
        made[add.id] = tokens[0, ids.shape[1] :].tolist()
    return made


def make_adapters(root: Path, base: Path, **fields: Any) -> list[Path]:
    """Adapters of several ranks and targets."""
    return [
        make_adapter(root / "all", base, seed=1, **fields),
        make_adapter(root / "queries", base, seed=2, rank=64, targets=("q_proj", "v_proj"), **fields),
        make_adapter(root / "mlp", base, seed=3, rank=3, targets=("gate_proj", "down_proj"), use_rslora=True, **fields),
        make_adapter(root / "wide", base, seed=4, rank=17, targets=("k_proj", "o_proj", "up_proj"), **fields),
    ]


def with_adapters(chosen: list[Path | None], sampling: dict[str, Any]) -> list[Add]:
    """A sequence for each, with its adapter or none."""
    plain = make_adds(len(chosen), {}, max_prompt=100)
    return [
        adapted(add.id, folder, prompt=add.prompt_ids, max_tokens=12, seed=index, **sampling)
        for index, (add, folder) in enumerate(zip(plain, chosen, strict=True))
    ]


WIDER_CHECKS: list[Callable[[Folders], None]] = [
    adapters_agree_with_plain_ones,
    experts_agree_with_plain_ones,
    mixtures_say_what_transformers_says,
    gemma_and_phi_say_what_transformers_says,
    gpt_oss_attends_as_the_plain_way_and_says_what_transformers_says,
    adapters_give_the_tokens_of_the_cpu_and_of_merged_models,
    adapters_of_partly_turned_heads_and_of_experts,
    adapters_come_and_go_under_traffic,
    newer_models_in_bfloat16_stay_near,
    adapters_in_bfloat16_stay_near,
]


if __name__ == "__main__":
    sys.exit(run_checks(WIDER_CHECKS))
