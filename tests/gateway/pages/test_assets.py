"""The pages' files: only those, of the right type, and none twice over the line."""

import gzip
import os
from pathlib import Path

import pytest

from axon.errors import NotFound
from axon.gateway.pages.assets import ROOMS, Asset, Assets, answer

UI = Path(__file__).resolve().parents[3] / "src" / "axon" / "gateway" / "ui"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "api.js").write_text("export const answer = 42;\n" * 100)
    (tmp_path / "common" / "small.css").write_text("body {}\n")
    (tmp_path / "common" / "sign-in.html").write_text("<!doctype html>")
    (tmp_path / "common" / "notes.txt").write_text("secret")
    (tmp_path / "secret.js").write_text("secret")
    return tmp_path


def test_a_file_has_its_type_and_is_compressed_where_that_gains(folder: Path) -> None:
    script, style = Assets(folder).file("common", "api.js"), Assets(folder).file("common", "small.css")
    assert (script.media_type, style.media_type) == ("text/javascript; charset=utf-8", "text/css; charset=utf-8")
    assert gzip.decompress(script.compressed) == script.content
    assert style.compressed == b""


@pytest.mark.parametrize(
    ("room", "name"),
    [
        ("common", "nothing.js"),
        ("common", "sign-in.html"),
        ("common", "notes.txt"),
        ("common", "../secret.js"),
        ("common", "..%2fsecret.js"),
        ("..", "secret.js"),
        (".", "secret.js"),
        ("", "secret.js"),
        ("common", "/etc/passwd"),
        ("common", "api.js\x00.css"),
        ("common", ".js"),
        ("common", "API.JS"),
        ("common", ""),
        ("pages", "assets.py"),
    ],
)
def test_what_is_no_file_of_a_page_is_not_found(folder: Path, room: str, name: str) -> None:
    with pytest.raises(NotFound):
        Assets(folder).file(room, name)


def test_a_file_is_read_again_when_it_has_changed(folder: Path) -> None:
    assets = Assets(folder)
    before = assets.file("common", "small.css")
    assert assets.file("common", "small.css") is before
    path = folder / "common" / "small.css"
    path.write_text("body { color: red }\n")
    os.utime(path, ns=(1, 1))
    after = assets.file("common", "small.css")
    assert after.content == b"body { color: red }\n"
    assert after.etag != before.etag


@pytest.fixture
def script(folder: Path) -> Asset:
    return Assets(folder).file("common", "api.js")


def test_a_browser_that_has_the_file_is_told_so(script: Asset) -> None:
    for said in (script.etag, f"W/{script.etag}", f'"other", {script.etag}'):
        reply = answer(script, {"if-none-match": said}, {"x-content-type-options": "nosniff"})
        assert (reply.status_code, reply.body) == (304, b"")
        assert reply.headers["etag"] == script.etag
        assert reply.headers["x-content-type-options"] == "nosniff"
    assert answer(script, {"if-none-match": '"other"'}, {}).status_code == 200


def test_it_is_compressed_for_those_who_take_that(script: Asset) -> None:
    plain, small = answer(script, {}, {}), answer(script, {"accept-encoding": "br, gzip"}, {})
    assert (plain.body, small.body) == (script.content, script.compressed)
    assert "content-encoding" not in plain.headers
    assert small.headers["content-encoding"] == "gzip"
    assert plain.headers["cache-control"] == "no-cache"
    assert "accept-encoding" in plain.headers["vary"]


@pytest.mark.parametrize("path", sorted(UI.glob("*/*.html")), ids=lambda path: path.name + " of " + path.parent.name)
def test_a_page_loads_files_that_there_are_and_has_nothing_inline(path: Path) -> None:
    text, assets = path.read_text(), Assets()
    for part in text.split('"ui/')[1:]:
        target = part.partition('"')[0]
        if not target.startswith("oidc/"):
            assets.file(*target.split("/", 1))
    assert "<style" not in text
    assert 'style="' not in text
    assert "<base" not in text
    assert not [line for line in text.splitlines() if "<script" in line and "src=" not in line]
    assert not [word for word in ("http://", "https://", 'href="/', 'src="/', "onclick=", "onload=") if word in text]


def test_every_file_of_the_pages_is_served() -> None:
    for room in ROOMS:
        for path in (UI / room).iterdir():
            if path.suffix != ".html":
                assert Assets().file(room, path.name).content == path.read_bytes()
