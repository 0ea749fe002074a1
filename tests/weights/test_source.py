"""SOURCE as people write it: what each form means, and what is refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.errors import InvalidInput
from axon.weights.source import Bucket, HubRepo, LocalPath, Location, file_of, parse_source


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("/models/tiny", LocalPath(path=Path("/models/tiny"))),
        ("/models/x.gguf", LocalPath(path=Path("/models/x.gguf"))),
        ("hf://Qwen/Qwen3-0.6B", HubRepo(repo="Qwen/Qwen3-0.6B")),
        ("hf://Qwen/Qwen3-0.6B@v1.0", HubRepo(repo="Qwen/Qwen3-0.6B", revision="v1.0")),
        ("hf://a/b@refs/pr/3", HubRepo(repo="a/b", revision="refs/pr/3")),
        ("hf://a/b@main/Q4/x.gguf", HubRepo(repo="a/b", file="Q4/x.gguf")),
        ("s3://models", Bucket(bucket="models")),
        ("s3://models/a/b/", Bucket(bucket="models", prefix="a/b")),
        ("s3://models/a/x.gguf", Bucket(bucket="models", prefix="a", file="x.gguf")),
    ],
)
def test_every_form_has_its_location(text: str, location: Location) -> None:
    assert parse_source(text) == location
    assert parse_source(location.text) == location


def test_a_path_is_made_absolute_and_its_home_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert parse_source("~/x").text == "/home/me/x"
    assert parse_source("~nobody-of-this-machine/x").text.endswith("/~nobody-of-this-machine/x")
    assert Path(parse_source("x").text).is_absolute()


@pytest.mark.parametrize(
    "text",
    [
        *("", "  ", "a\0b", "http://example.com/x", "gs://bucket/x", "hf://", "hf://name", "hf://a/b/c", "hf://a/b@"),
        *("hf://a/b@x@y", "hf://../b", "hf://a/b@main/../../x.gguf", "hf://a/b@main/model.bin", "s3://", "s3:///x"),
        *("s3://b", "s3://bucket/../x", "s3://bucket/a//b", "s3://user:secret@bucket/x", "s3://bucket/x?versionId=1"),
        "s3://bucket/a\\b",
    ],
)
def test_nonsense_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_source(text)
    assert refused.value.param == "source"


@given(st.text())
def test_any_text_is_a_location_or_refused(text: str) -> None:
    try:
        location = parse_source(text)
    except InvalidInput:
        return
    assert ".." not in file_of(location).split("/")
