"""``axon serve --open``: the page is opened with its code, in a thread, and nothing waits for the browser."""

import threading
import webbrowser
from dataclasses import replace
from pathlib import Path

import pytest

from axon.console.serving.screen import open_page, ready_screen
from tests.console.test_banner import make_ready


def test_the_screen_shows_the_chat_with_its_code(tmp_path: Path) -> None:
    ready = replace(make_ready(tmp_path, "http://127.0.0.1:8000"), code="one-time")
    assert "http://127.0.0.1:8000/#code=one-time   (signs you in once, within a minute)" in ready_screen(ready)


def test_without_a_code_the_screen_shows_the_address_alone(tmp_path: Path) -> None:
    (line,) = (
        line for line in ready_screen(make_ready(tmp_path, "http://10.0.0.7:8000")).splitlines() if "Chat" in line
    )
    assert line.split() == ["Chat", "http://10.0.0.7:8000/"]


def test_a_browser_that_keeps_its_starter_waiting_keeps_no_server_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, go_on, done = [], threading.Event(), threading.Event()

    def slow(address: str) -> bool:
        go_on.wait(60)
        opened.append(address)
        done.set()
        return True

    monkeypatch.setattr(webbrowser, "open", slow)
    open_page("http://127.0.0.1:8000/#code=one-time")
    assert opened == []
    go_on.set()
    assert done.wait(60)
    assert opened == ["http://127.0.0.1:8000/#code=one-time"]
