"""Which files of a source are fetched, and that none is written outside the folder."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.engine.load.convert import gguf
from axon.engine.native import packed_weights
from axon.errors import InvalidInput
from axon.weights.names import MANIFEST, OWN_FILES, choose, refusal
from axon.weights.source import StatedFile


def stated(*names: str) -> list[StatedFile]:
    return [StatedFile(name=name, size=1) for name in names]


def chosen(*names: str, file: str = "") -> list[str]:
    return [each.name for each in choose(stated(*names), file=file).files]


@pytest.mark.parametrize(
    "name",
    ["", "..", "../x", "a/../x", "/etc/passwd", "a\\b", "a//b", "./a", "a/", "a\0b", "a\nb", "x" * 300, MANIFEST],
)
def test_a_name_that_is_not_safe_refuses_the_whole_source(name: str) -> None:
    assert refusal(name)
    with pytest.raises(InvalidInput, match="Nothing was fetched"):
        choose(stated("model.safetensors", name))


@given(st.text() | st.lists(st.sampled_from(["..", ".", "", "a", "~", "b.json", "\\", "c:"])).map("/".join))
def test_a_name_that_is_allowed_stays_below_its_folder(name: str) -> None:
    if refusal(name) is None:
        folder = Path("/models/folder")
        path = os.path.normpath(folder / name)
        assert path.startswith("/models/folder/")
        assert Path(path) == folder / name


def test_pickled_weights_are_never_fetched() -> None:
    pickled = [f"model.{kind}" for kind in ("bin", "pt", "pth", "pkl", "ckpt", "pickle", "h5", "npz")]
    found = choose(stated("model.safetensors", "config.json", *pickled))
    assert [each.name for each in found.files] == ["model.safetensors", "config.json"]
    assert {name for name, reason in found.skipped if "can run code" in reason} == set(pickled)
    with pytest.raises(InvalidInput, match=r"pickled weights only.*convert them to safetensors"):
        choose(stated("config.json", *pickled))


def test_only_what_a_model_needs_is_fetched() -> None:
    names = ("README.md", "model.safetensors", "config.json", "onnx/model.onnx", "run.py", "chat_template.jinja")
    assert chosen(*names) == ["model.safetensors", "config.json", "chat_template.jinja"]


def test_what_axon_wrote_beside_a_model_that_it_served_is_no_part_of_it() -> None:
    own = {packed_weights.FILE, "native-int8.json", gguf.MANIFEST}
    found = choose(stated("config.json", "model.safetensors", *own))
    assert [each.name for each in found.files] == ["config.json", "model.safetensors"]
    assert found.skipped == ()
    assert own == set(OWN_FILES)


def test_a_second_copy_of_the_weights_stays_where_it_is() -> None:
    assert chosen("model-00001-of-00001.safetensors", "consolidated.safetensors", "x.gguf") == [
        "model-00001-of-00001.safetensors"
    ]
    assert chosen("a.safetensors", "b.safetensors") == ["a.safetensors", "b.safetensors"]


def test_a_gguf_file_is_taken_with_all_its_parts_and_must_be_named_among_several() -> None:
    assert chosen("x.gguf", "README.md") == ["x.gguf"]
    parts = ("x-00001-of-00002.gguf", "x-00002-of-00002.gguf")
    assert chosen(*parts) == list(parts)
    assert chosen("y.gguf", *parts, file=parts[0]) == list(parts)
    with pytest.raises(InvalidInput, match=r"2 \.gguf models.*x\.gguf, y\.gguf"):
        chosen("x.gguf", "y.gguf")
    with pytest.raises(InvalidInput, match=r"has no file x-00002-of-00002\.gguf"):
        chosen(parts[0])
    with pytest.raises(InvalidInput, match="has no model"):
        chosen("README.md")
