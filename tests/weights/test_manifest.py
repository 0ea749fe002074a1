"""The manifest: whatever was written is read again, and nothing else is."""

import hashlib
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.weights.manifest import (
    Entry,
    Manifest,
    decode,
    encode,
    new_manifest,
    read_manifest,
    write_manifest,
)
from axon.weights.names import MANIFEST, refusal
from axon.weights.source import Check

names = st.text(min_size=1, max_size=30).filter(lambda name: refusal(name) is None)
digests = st.binary(min_size=32, max_size=32).map(bytes.hex)
checks = st.none() | st.builds(Check, kind=st.sampled_from(["sha256", "git", "md5"]), value=st.text(max_size=10))


@st.composite
def entries(draw: st.DrawFn, whole: bool = False) -> Entry:
    size = draw(st.integers(0, 2**60))
    verified = size if whole else draw(st.integers(0, size))
    return Entry(
        name=draw(names), size=size, tag=draw(names), check=draw(checks), verified=verified, sha256=draw(digests)
    )


def manifests(whole: bool = False) -> st.SearchStrategy[Manifest]:
    files = st.lists(entries(whole), unique_by=lambda entry: entry.name, max_size=5).map(tuple)
    return st.builds(Manifest, source=names, revision=st.just("") | digests, files=files)


@given(manifests())
def test_a_manifest_is_read_as_it_was_written(manifest: Manifest) -> None:
    assert decode(encode(manifest)) == manifest


@given(manifests(), st.data())
def test_a_damaged_manifest_is_refused_or_reads_as_one_that_is_safe(manifest: Manifest, data: st.DataObject) -> None:
    text = bytearray(encode(manifest))
    text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = decode(bytes(text))
    except ValueError:
        return
    assert all(refusal(entry.name) is None and 0 <= entry.verified <= entry.size for entry in found.files)


@given(st.binary())
def test_other_bytes_are_no_manifest(data: bytes) -> None:
    with pytest.raises(ValueError, match="manifest"):
        decode(data)


@given(manifests(whole=True), st.randoms())
def test_the_digest_depends_on_names_sizes_and_digests_alone(manifest: Manifest, random: Random) -> None:
    files = list(manifest.files)
    random.shuffle(files)
    other = Manifest(source="elsewhere", revision="x", files=tuple(replace(each, tag="", check=None) for each in files))
    assert other.digest == manifest.digest
    for index, entry in enumerate(manifest.files):
        for changed in (
            replace(entry, name=f"{entry.name}x"),
            replace(entry, size=entry.size + 1, verified=entry.size + 1),
            replace(entry, sha256=hashlib.sha256(entry.sha256.encode()).hexdigest()),
        ):
            others = (*manifest.files[:index], changed, *manifest.files[index + 1 :])
            assert replace(manifest, files=others).digest != manifest.digest


@pytest.mark.parametrize(
    "entry",
    [
        Entry(name="../x", size=1),
        Entry(name="/x", size=1),
        Entry(name="x", size=-1),
        Entry(name="x", size=1, verified=2),
        Entry(name="x", size=1, verified=-1),
    ],
)
def test_a_manifest_that_no_fetch_wrote_is_refused(entry: Entry) -> None:
    with pytest.raises(ValueError, match="manifest"):
        decode(encode(Manifest(source="s", files=(entry,))))
    with pytest.raises(ValueError, match="manifest"):
        decode(encode(Manifest(source="s", files=(Entry(name="x", size=1),) * 2)))


def test_a_folder_without_a_readable_manifest_has_none(tmp_path: Path) -> None:
    assert read_manifest(tmp_path) is None
    (tmp_path / MANIFEST).write_bytes(b"{")
    assert read_manifest(tmp_path) is None
    write_manifest(tmp_path, manifest := new_manifest("s", "", ()))
    assert read_manifest(tmp_path) == manifest
    assert [path.name for path in tmp_path.iterdir()] == [MANIFEST]
