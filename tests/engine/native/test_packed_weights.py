"""Packed weights: what they hold, when they are made anew, and that half a file is never taken for a whole one."""

from pathlib import Path

import numpy as np
import pytest

from axon.engine.load.architecture import read_architecture
from axon.engine.native.build import GROUP_SIZE
from axon.engine.native.packed_weights import FILE, MANIFEST, ensure_packed, from_halves, interleave, quantise
from tests.engine.builders import make_tiny_llama

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
    assert sorted(path.name for path in folder.glob("native*")) == [FILE, MANIFEST]


def test_a_read_only_model_is_packed_into_the_spare_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, spare = make_tiny_llama(tmp_path / "model"), tmp_path / "spare"
    monkeypatch.setattr("os.access", lambda path, mode: False)  # a superuser may write anywhere
    for _ in range(2):
        assert "0.qkv.panels" in ensure_packed(read_architecture(folder), folder, GROUP, spare)
    assert [path.name for path in spare.glob("*/*.bin")] == [FILE]
    assert not list(folder.glob("native*"))


@pytest.mark.parametrize("harm", ["manifest", "truncated", "other weights"])
def test_what_is_not_whole_or_not_of_this_model_is_made_anew(tmp_path: Path, harm: str) -> None:
    folder = make_tiny_llama(tmp_path)
    architecture = read_architecture(folder)
    expected = (ensure_packed(architecture, folder, GROUP))["0.qkv.panels"].copy()
    if harm == "manifest":
        (folder / MANIFEST).write_text("{")
    elif harm == "truncated":
        (folder / FILE).write_bytes(b"short")
    else:
        make_tiny_llama(tmp_path, tie_word_embeddings=False)
    packed = ensure_packed(read_architecture(folder), folder, GROUP)
    assert ("head.panels" in packed) == (harm == "other weights")
    assert harm == "other weights" or np.array_equal(packed["0.qkv.panels"], expected)
