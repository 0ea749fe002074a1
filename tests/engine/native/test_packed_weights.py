"""Packed weights: what they hold, when they are made anew, and that half a file is never taken for a whole one."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from axon.engine.load.architecture import read_architecture
from axon.engine.native.build import GROUP_SIZE
from axon.engine.native.packed_weights import FILE, ensure_packed, from_halves, interleave, quantise
from tests.engine.builders import make_tiny_llama
from tests.engine.native.builders import Tiny

GROUP = GROUP_SIZE


def test_a_panel_holds_sixteen_outputs_four_inputs_at_a_time() -> None:
    weight = np.random.default_rng(0).normal(size=(20, 40)).astype(np.float32)
    panels, scales = quantise(weight, GROUP)
    assert panels.shape == (2, 64 // 4 if GROUP <= 64 else GROUP // 4, 16, 4)
    assert scales.shape == (2, panels.shape[1] * 4 // GROUP, 16)
    for output, value in ((0, 0), (17, 39), (5, 21)):
        whole = panels[output // 16, value // 4, output % 16, value % 4]
        scale = from_halves(scales)[output // 16, value // GROUP, output % 16]
        assert abs(whole * scale - weight[output, value]) <= scale / 2 + 1e-6
    assert not panels[1, :, 4:].any(), "padding is zeros"
    assert np.abs(panels.astype(int)).max() <= 127, "-128 has no place in the products"


def test_gate_and_up_take_turns() -> None:
    gate, up = np.ones((20, 3), np.float32), np.full((20, 3), 2, np.float32)
    both = interleave(gate, up, GROUP)[:, 0]
    assert both[:16].tolist() == [1] * 16
    assert both[16:32].tolist() == [2] * 16
    assert both[32:48].tolist() == [1] * 4 + [0] * 12


def test_a_second_start_maps_what_the_first_has_packed(tmp_path: Path) -> None:
    folder = make_tiny_llama(tmp_path)
    architecture = read_architecture(folder)
    ensure_packed(architecture, folder, GROUP)
    written = (folder / FILE).stat().st_mtime_ns
    ensure_packed(architecture, folder, GROUP)
    assert (folder / FILE).stat().st_mtime_ns == written
    assert sorted(path.name for path in folder.iterdir() if FILE in path.name) == [FILE]


def test_a_read_only_model_is_packed_into_the_spare_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, spare = make_tiny_llama(tmp_path / "model"), tmp_path / "spare"
    monkeypatch.setattr("os.access", lambda path, mode: False)  # a superuser may write anywhere
    for _ in range(2):
        assert "0.qkv.panels" in ensure_packed(read_architecture(folder), folder, GROUP, spare)
    assert [path.name for path in spare.glob("*/*.bin")] == [FILE]
    assert not list(folder.glob("native*"))


def test_in_the_spare_folder_those_used_least_recently_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    spare = tmp_path / "spare"
    models = [make_tiny_llama(tmp_path / str(number), seed=number) for number in range(4)]

    def pack(number: int, most_bytes: int) -> Path:
        ensure_packed(read_architecture(models[number]), models[number], GROUP, spare, most_bytes)
        return max(spare.iterdir(), key=lambda path: path.stat().st_mtime_ns)

    first, second, third = (pack(number, 1 << 40) for number in range(3))
    for age, folder in enumerate((first, third, second)):
        os.utime(folder, ns=(0, age))
    size = (first / FILE).stat().st_size
    fourth = pack(3, 2 * size)
    assert set(spare.iterdir()) == {second, fourth}


@pytest.mark.parametrize("harm", ["trailer", "truncated", "empty", "foreign", "one byte", "other weights"])
def test_what_is_not_whole_or_not_of_this_model_is_made_anew(tmp_path: Path, harm: str) -> None:
    folder = make_tiny_llama(tmp_path)
    architecture = read_architecture(folder)
    expected = (ensure_packed(architecture, folder, GROUP))["0.qkv.panels"].copy()
    content = bytearray((folder / FILE).read_bytes())
    if harm == "trailer":
        content[-30] ^= 1
    elif harm == "truncated":
        del content[len(content) // 2 :]
    elif harm == "empty":
        content.clear()
    elif harm == "foreign":
        content = bytearray(np.random.default_rng(0).bytes(len(content)))
    elif harm == "one byte":
        content[100] ^= 1
    else:
        make_tiny_llama(tmp_path, tie_word_embeddings=False)
    (folder / FILE).write_bytes(content)
    packed = ensure_packed(read_architecture(folder), folder, GROUP)
    assert ("head.panels" in packed) == (harm == "other weights")
    assert harm == "other weights" or np.array_equal(packed["0.qkv.panels"], expected)


def test_mapped_weights_give_the_logits_of_freshly_packed_ones_to_the_bit(tmp_path: Path) -> None:
    folder = make_tiny_llama(tmp_path, head_dim=16)

    def logits() -> bytes:
        return b"".join(each.tobytes() for each in Tiny(folder).logits((0, 0, [3, 1, 4, 1, 5]), (1, 0, [9, 2])))

    packed, mapped = logits(), logits()
    (folder / FILE).unlink()
    assert packed == mapped == logits()


def test_a_copy_of_the_file_is_compared_once_and_taken(tmp_path: Path) -> None:
    folder = make_tiny_llama(tmp_path)
    architecture = read_architecture(folder)
    ensure_packed(architecture, folder, GROUP)
    written = (folder / FILE).stat()
    (folder / FILE).write_bytes((folder / FILE).read_bytes())
    assert (folder / FILE).stat().st_mtime_ns != written.st_mtime_ns
    ensure_packed(architecture, folder, GROUP)
    assert (folder / FILE).stat().st_ino == written.st_ino, "it was not made anew"
    assert (folder / FILE).stat().st_mtime_ns == written.st_mtime_ns


PACKER = """
import sys
from pathlib import Path
from axon.engine.load.architecture import read_architecture
from axon.engine.native.packed_weights import FILE, ensure_packed

folder = Path(sys.argv[1])
for _ in range(20):
    packed = ensure_packed(read_architecture(folder), folder, 32)
    print(bytes(packed["0.qkv.panels"]).hex()[:64], flush=True)
    (folder / FILE).unlink(missing_ok=True)
"""


def test_two_processes_may_write_at_once(tmp_path: Path) -> None:
    folder = make_tiny_llama(tmp_path)
    command = [sys.executable, "-c", PACKER, str(folder)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert len({line for out, _ in said for line in out.splitlines()}) == 1
    assert [path.name for path in folder.iterdir() if FILE in path.name] in ([], [FILE]), "nothing is left behind"
