"""How the command line finds a server by what a person writes."""

import pytest

from axon.console.server.server import Server
from axon.errors import Misconfigured
from axon.settings import Settings


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("http://127.0.0.1:8030", "http://127.0.0.1:8030"),
        ("127.0.0.1:8030", "http://127.0.0.1:8030"),
        ("localhost:8030/v1/", "http://localhost:8030"),
        ("gpu-box:8000", "http://gpu-box:8000"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("localhost", "http://localhost"),
        ("llm.example.com", "http://llm.example.com"),
        ("https://llm.example.com/v1", "https://llm.example.com"),
    ],
)
def test_an_address_needs_no_scheme(written: str, meant: str) -> None:
    with Server.find(Settings(), url=written, key="k") as server:
        assert server.url == meant


@pytest.mark.parametrize("written", ["nonsense", "ftp://127.0.0.1:8030", "127.0.0.1:port", "http://"])
def test_what_is_no_address_is_refused_with_the_words_that_were_written(written: str) -> None:
    with pytest.raises(Misconfigured, match="is no address of a server") as refused:
        Server.find(Settings(), url=written, key="k")
    assert written in str(refused.value)
    assert "8000" not in str(refused.value)
