"""A file with a service's URL is read or refused with the next step. It never hangs, and is never read without end."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from axon.adapters.service_address import ServiceAddress
from axon.errors import DependencyDown, Misconfigured
from axon.runtime.url_file import UrlFile
from axon.settings import load

URL = "redis://axon:s3cret@cache"


def _huge(path: Path) -> None:
    """Longer than memory is."""
    path.touch()
    os.truncate(path, 1 << 38)


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "absent": (lambda path: None, r"it cannot be read \(No such file"),
    "empty": (lambda path: path.write_text("\n"), "it is empty"),
    "a pipe that nobody writes to": (os.mkfifo, "it is no regular file"),
    "a folder": (os.mkdir, "it is no regular file"),
    "a device without an end": (lambda path: path.symlink_to("/dev/zero"), "it is no regular file"),
    "huge": (_huge, "it is longer than 16,384 bytes"),
    "binary": (lambda path: path.write_bytes(b"\xff\xfe s3cret"), "it is not text"),
    "two lines": (lambda path: path.write_text(f"{URL}\n{URL}\n"), "it is not one line of text"),
    "zeros": (lambda path: path.write_bytes(bytes(100)), "it is not one line of text"),
}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", WRONG)
def test_what_holds_no_url_is_refused_at_the_start_and_later(kind: str, tmp_path: Path) -> None:
    make, said = WRONG[kind]
    path = tmp_path / "url"
    make(path)
    said = rf"live_file is {path}, which cannot be used: {said}"
    with pytest.raises(Misconfigured, match=said) as first:
        load({"live_file": str(path)}, {})
    file = UrlFile(setting="live", path=path)
    with pytest.raises(DependencyDown, match=said) as later:
        ServiceAddress(url=URL, file=file).current()
    assert first.value.message == later.value.message
    assert later.value.message.endswith("Write the URL of the live service into it, or check its rights.")
    assert "s3cret" not in later.value.message


def test_a_url_is_read_through_a_link_and_without_the_end_of_its_line(tmp_path: Path) -> None:
    """As Kubernetes mounts secrets."""
    (tmp_path / "data").write_text(f" {URL}\r\n")
    (tmp_path / "url").symlink_to("data")
    assert UrlFile(setting="live", path=tmp_path / "url").read() == URL
    assert load({"live_file": str(tmp_path / "url")}, {}).settings.live == URL
