"""What is promised of weights in few bits on a GPU, and of what lies beside the model; see ``checks``."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.engine.cuda.driving import Folders, on_gpu
from tests.engine.cuda.shapes import WIDE


def fp8_kernels_agree_with_plain_ones(_: Folders) -> None:
    from tests.engine.cuda.fp8 import compare_all

    compare_all()


def fp8_is_as_near_in_every_way(make_folder: Folders) -> None:
    """A row's logits through chunks, many decodes and one decode, against bfloat16; keys and values in fp8 too."""
    from tests.engine.cuda.fp8_ways import compare

    for name, changes in WIDE.items():
        compare(name, make_folder(changes | {"num_hidden_layers": 4}), on_gpu)


def published_fp8_runs_as_it_is(make_folder: Folders) -> None:
    from tests.engine.cuda.fp8_ways import check_published

    check_published(make_folder(WIDE["llama"] | {"num_hidden_layers": 4}), on_gpu)


def fp8_over_ranks_is_as_near(make_folder: Folders) -> None:
    from tests.engine.cuda.fp8_ways import compare_ranks

    compare_ranks(make_folder(WIDE["llama"] | {"num_hidden_layers": 4}), on_gpu)


def published_fp8_arrives_whole_through_pinned_memory(make_folder: Folders) -> None:
    from tests.engine.cuda.fp8_ways import compare_upload

    compare_upload(make_folder(WIDE["llama"] | {"num_hidden_layers": 4}))


def four_bit_kernels_agree_with_plain_ones(_: Folders) -> None:
    from tests.engine.cuda.four_bits import compare_all

    compare_all()


def published_four_bits_stay_packed(make_folder: Folders) -> None:
    """AWQ and GPTQ checkpoints against the same numbers unpacked to bfloat16, in every way through the engine."""
    from tests.engine.cuda.four_bits import check_published

    check_published(make_folder(WIDE["llama"]), on_gpu)


def a_gguf_file_says_what_its_numbers_say(make_folder: Folders) -> None:
    from tests.engine.cuda.gguf_file import compare

    compare(make_folder(WIDE["llama"]), on_gpu)


def encoders_give_the_vectors_of_the_cpu(_: Folders) -> None:
    from tests.engine.cuda.encoder import compare

    with tempfile.TemporaryDirectory() as root:
        compare(Path(root))


def blocks_come_back_from_host_memory_and_files(make_folder: Folders) -> None:
    from tests.engine.cuda.shelf import compare

    compare(make_folder({}), on_gpu, few_bytes=11 * 64 * 384)
    compare(make_folder(WIDE["llama"]), on_gpu, few_bytes=11 * 64 * 3 * 2 * 2 * 64 * 4)
    compare(
        make_folder(WIDE["llama"]), on_gpu, few_bytes=11 * 64 * 3 * 2 * 2 * 64 * 2, is_exact=False, dtype="bfloat16"
    )


FEW_BITS: list[Callable[[Folders], None]] = [
    four_bit_kernels_agree_with_plain_ones,
    published_four_bits_stay_packed,
    a_gguf_file_says_what_its_numbers_say,
    fp8_kernels_agree_with_plain_ones,
    fp8_is_as_near_in_every_way,
    published_fp8_runs_as_it_is,
    published_fp8_arrives_whole_through_pinned_memory,
    fp8_over_ranks_is_as_near,
    encoders_give_the_vectors_of_the_cpu,
    blocks_come_back_from_host_memory_and_files,
]
