from pathlib import Path

import pytest

from axon.domain.names import is_id, is_served_name
from axon.domain.tenants.tenant import check_id
from axon.errors import InvalidInput, Misconfigured
from axon.model_settings import ModelEntry, is_entry, model_entries, table_text
from axon.settings import load


def test_no_text_is_no_model() -> None:
    assert model_entries("") == ()


def test_models_have_names_sources_and_settings_of_their_own() -> None:
    assert model_entries(" small=default, qwen = /models/q=1 ;dtype=float32; max_model_len = 512,") == (
        ModelEntry(name="small", source="default"),
        ModelEntry(name="qwen", source="/models/q=1", engine=(("dtype", "float32"), ("max_model_len", "512"))),
    )


@pytest.mark.parametrize("name", ["small", "Qwen3-0.6B", "_x", "a" * 64, ".x", "-x", "a" * 65, "a b", "", "a@b", "ä"])
def test_a_name_that_the_registry_takes_is_one_that_a_server_takes_and_the_other_way_round(name: str) -> None:
    is_taken = is_id(name)
    assert is_served_name(name) is is_taken
    assert is_entry(f"{name}=/models/x") is is_taken
    if not is_taken:
        with pytest.raises(InvalidInput):
            check_id(name)


@pytest.mark.parametrize(
    ("name", "is_taken"), [("org/name", True), ("a/b/c", True), ("a//b", False), ("a/", False), ("/a", False)]
)
def test_a_server_also_takes_several_such_names_with_slashes_between_them(name: str, is_taken: bool) -> None:
    assert is_served_name(name) is is_taken
    assert not is_id(name)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("small", "each is written NAME=SOURCE"),
        ("small=", "each is written NAME=SOURCE"),
        ("=default", "A model's name must have"),
        ("a b=default", "A model's name must have"),
        ("a=default,a=/x", "Two models have the name a"),
        ("a=default;int8", "write SETTING=VALUE"),
    ],
)
def test_a_text_that_cannot_be_read_is_refused_in_words(text: str, sentence: str) -> None:
    with pytest.raises(Misconfigured, match=sentence):
        model_entries(text)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("small=default", True),
        ("org/small=/x", True),
        ("/models/a=b", False),
        ("./a=b.gguf", False),
        ("default", False),
    ],
)
def test_a_path_with_an_equals_sign_is_no_name(text: str, is_one: bool) -> None:
    assert is_entry(text) is is_one


class TestTables:
    def loaded(self, folder: Path, text: str) -> tuple[tuple[str, str, str, int], ...]:
        file = folder / "axon.toml"
        file.write_text(text)
        models = load({}, {}, file).settings.each_model()
        return tuple((each.model_name, each.model, each.engine.dtype, each.engine.max_model_len) for each in models)

    def test_each_model_has_the_shared_settings_but_for_its_own(self, tmp_path: Path) -> None:
        text = """
[engine]
dtype = "float32"
[models]
small = "default"
[models.qwen]
source = "/models/qwen"
dtype = "int8"
max_model_len = 512
"""
        assert self.loaded(tmp_path, text) == (
            ("small", "default", "float32", 0),
            ("qwen", "/models/qwen", "int8", 512),
        )

    def test_without_models_there_is_the_one(self, tmp_path: Path) -> None:
        assert self.loaded(tmp_path, 'model_name = "x"') == (("x", "default", "auto", 0),)

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("[models.a]\ndtype = 'int8'", "needs a source"),
            ("[models]\na = 3", "needs a source"),
            ("[models.a]\nsource = 'x'\ndtypes = 'int8'", "Did you mean dtype?"),
            ("[models.a]\nsource = 'x'\ndtype = 'int9'", "dtype of the model a must be"),
            ("[models.a]\nsource = 'x'\nmax_model_len = -1", "must be 0 or more"),
        ],
    )
    def test_what_is_wrong_is_said(self, tmp_path: Path, text: str, sentence: str) -> None:
        with pytest.raises(Misconfigured, match=sentence):
            self.loaded(tmp_path, text)


def test_a_truth_value_of_a_table_is_written_as_the_settings_read_it() -> None:
    assert table_text({"a": {"source": "x", "speculate": False}}) == "a=x;speculate=false"
