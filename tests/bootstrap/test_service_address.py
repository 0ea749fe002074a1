"""URLs of services that are in files: read at the start, read again for every connection, and never both ways."""

import os
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from axon.adapters.live.redis.credentials import credentials_of, without_credentials
from axon.adapters.service_address import ServiceAddress, address_of
from axon.errors import DependencyDown, Misconfigured
from axon.runtime.url_file import UrlFile
from axon.settings import environment_of, load

URL = "amqps://axon:s3cret@broker/"


def test_an_address_without_a_file_is_its_url() -> None:
    assert address_of(URL).current() == URL
    assert address_of(address_of(URL)) == address_of(URL)
    assert "s3cret" not in repr(address_of(URL))


def test_the_file_is_read_each_time(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(f"{URL}\n")
    address = ServiceAddress(url=URL, file=UrlFile(setting="queue", path=file))
    assert address.current() == URL
    file.write_text("amqps://axon:other@broker/")
    assert address.current() == "amqps://axon:other@broker/"


@pytest.mark.parametrize("text", ["", "redis://axon:s3cret@cache", "amqp://axon:s3cret@broker/", None])
def test_a_file_without_such_a_url_is_an_outage_that_quotes_nothing(tmp_path: Path, text: str | None) -> None:
    """Also one without the s of TLS: a file must not turn it off."""
    file = tmp_path / "url"
    if text is not None:
        file.write_text(text)
    with pytest.raises(DependencyDown) as raised:
        ServiceAddress(url=URL, file=UrlFile(setting="queue", path=file)).current()
    assert f"queue_file is {file}" in raised.value.message
    assert "Write the URL of the queue into it, or check its rights." in raised.value.message
    assert "s3cret" not in raised.value.message


def test_a_url_that_cannot_be_used_is_an_outage_if_it_is_in_a_file(tmp_path: Path) -> None:
    def refuses(url: str) -> str:
        raise Misconfigured("Its port is no number.")

    file = tmp_path / "url"
    file.write_text(URL)
    with pytest.raises(Misconfigured):
        address_of(URL).parsed(refuses)
    with pytest.raises(DependencyDown, match=r"cannot be used. Its port is no number."):
        ServiceAddress(url=URL, file=UrlFile(setting="queue", path=file)).parsed(refuses)


@pytest.mark.parametrize(
    ("url", "credentials", "rest"),
    [
        ("rediss://axon:p%40ss@cache:1/2?db=3", ("axon", "p@ss"), "rediss://cache:1/2?db=3"),
        ("redis://:pass@cache", ("pass",), "redis://cache"),
        ("redis://axon@cache", ("axon", ""), "redis://cache"),
        ("redis+cluster://cache:1", (), "redis+cluster://cache:1"),
    ],
)
def test_user_and_password_are_taken_out_of_a_url(url: str, credentials: tuple[str, ...], rest: str) -> None:
    assert credentials_of(url) == credentials
    assert without_credentials(url) == rest


def test_settings_take_a_url_from_its_file_and_hide_its_password(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(f"{URL}\n")
    loaded = load({}, {"AXON_QUEUE_FILE": str(file)})
    assert loaded.settings.queue == URL
    assert "s3cret" not in str(loaded.shown())


def test_a_process_that_is_started_with_these_settings_reads_the_file_itself(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(URL)
    settings = load({"queue_file": str(file), "data_dir": tmp_path}, {}).settings
    with patch.dict(os.environ, {}, clear=True):
        environ = environment_of(settings)
    assert "AXON_QUEUE" not in environ
    assert load({}, environ).settings == replace(settings, failpoints="")


@pytest.mark.parametrize(
    ("flags", "environ", "text", "said"),
    [
        (
            {},
            {"AXON_LIVE": "redis://a", "AXON_LIVE_FILE": "/b"},
            "",
            r"live \(AXON_LIVE\) and live_file",
        ),
        ({"live": "redis://a", "live_file": "/b"}, {}, "", r"live \(flag\) and live_file \(flag\)"),
        ({}, {}, "live = 'redis://a'\nlive_file = '/b'", r"live \(.*toml\) and live_file \(.*toml\)"),
        ({"live": "redis://c"}, {}, "live = 'redis://a'\nlive_file = '/b'", r"live \(.*toml\) and live_file"),
    ],
)
def test_a_url_and_a_file_with_one_are_too_many_for_one_source(
    tmp_path: Path, flags: dict[str, str], environ: dict[str, str], text: str, said: str
) -> None:
    config = tmp_path / "axon.toml"
    config.write_text(text)
    with pytest.raises(Misconfigured, match=f"{said}.* are both given"):
        load(flags, environ, file=config)


@pytest.mark.parametrize(
    ("flags", "environ", "text", "url"),
    [
        ({"store": "postgresql://flag"}, {"AXON_STORE_FILE": "FILE"}, "", "postgresql://flag"),
        ({"store": "postgresql://flag"}, {}, "store_file = 'FILE'", "postgresql://flag"),
        ({}, {"AXON_STORE": "postgresql://variable"}, "store_file = 'FILE'", "postgresql://variable"),
        ({"store_file": "FILE"}, {"AXON_STORE": "postgresql://variable"}, "", "postgresql://file"),
        ({"store_file": "FILE"}, {}, "store = 'postgresql://text'", "postgresql://file"),
        ({}, {"AXON_STORE_FILE": "FILE"}, "store = 'postgresql://text'", "postgresql://file"),
        ({"store": "postgresql://flag"}, {"AXON_STORE": "a"}, "store_file = 'FILE'", "postgresql://flag"),
    ],
)
def test_the_nearest_source_says_whether_a_url_is_in_a_file(
    tmp_path: Path, flags: dict[str, str], environ: dict[str, str], text: str, url: str
) -> None:
    """A flag beats the environment, which beats the file of settings, whichever of the two settings each has."""
    (file := tmp_path / "url").write_text("postgresql://file")
    (config := tmp_path / "axon.toml").write_text(text.replace("FILE", str(file)))
    named = [{name: value.replace("FILE", str(file)) for name, value in each.items()} for each in (flags, environ)]
    loaded = load(named[0], named[1], config)
    is_in_file = url == "postgresql://file"
    assert (loaded.settings.store, loaded.settings.store_file) == (url, file if is_in_file else None)
    assert (loaded.origins["store"] == "store_file") == is_in_file
    assert (loaded.origins["store_file"] == "default") != is_in_file


@pytest.mark.parametrize(("text", "said"), [(None, "No such file"), (" \n", "it is empty")])
def test_a_file_that_says_nothing_is_a_wrong_setting(tmp_path: Path, text: str | None, said: str) -> None:
    file = tmp_path / "url"
    if text is not None:
        file.write_text(text)
    with pytest.raises(
        Misconfigured, match=f"store_file is {file}, which .*{said}.*Write the URL of the store into it"
    ):
        load({"store_file": str(file)}, {})
