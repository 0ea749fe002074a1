"""The screen of a server that is up: its lines work when they are pasted, in whatever folder."""

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from axon.bootstrap.ready import Ready
from axon.console.serving.screen import ready_screen
from axon.settings import Settings


def make_ready(data_dir: Path, url: str) -> Ready:
    return Ready(
        url=url,
        metrics_url=f"{url}/metrics",
        key=None,
        key_file=data_dir / "dev-key",
        models=("m",),
        pid=3,
        waits=False,
    )


def chat_line(ready: Ready) -> list[str]:
    """The words of the line that starts a chat."""
    (line,) = (line for line in ready_screen(ready).splitlines() if "talk to it with:" in line)
    return shlex.split(line.partition("talk to it with:")[2])


def test_a_server_of_the_defaults_is_talked_to_without_flags() -> None:
    words = chat_line(make_ready(Settings().data_dir, "http://127.0.0.1:8000"))
    assert words[words.index("chat") :] == ["chat"]


def test_another_port_is_named() -> None:
    words = chat_line(make_ready(Settings().data_dir, "http://127.0.0.1:8030"))
    assert words[words.index("chat") :] == ["chat", "--url", "http://127.0.0.1:8030"]


def test_another_data_folder_is_named_with_the_address_and_quoted(tmp_path: Path) -> None:
    words = chat_line(make_ready(tmp_path / "a folder", "http://127.0.0.1:8000"))
    assert words[words.index("chat") + 1 :] == [
        *("--url", "http://127.0.0.1:8000"),
        *("--data-dir", str(tmp_path / "a folder")),
    ]


def test_a_program_that_is_not_on_the_path_is_called_by_its_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "venv" / "bin" / "axon"
    monkeypatch.setattr(sys, "argv", [os.path.relpath(program), "serve"])
    assert chat_line(make_ready(tmp_path, "http://127.0.0.1:8000"))[0] == str(program)


def test_another_program_of_this_name_on_the_path_is_not_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = [tmp_path / "other" / "axon", tmp_path / "venv" / "axon"]
    for program in programs:
        program.parent.mkdir()
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs[0].parent))
    monkeypatch.setattr(sys, "argv", [str(programs[1]), "serve"])
    assert chat_line(make_ready(tmp_path, "http://127.0.0.1:8000"))[0] == str(programs[1])
    monkeypatch.setenv("PATH", str(programs[1].parent))
    assert chat_line(make_ready(tmp_path, "http://127.0.0.1:8000"))[0] == "axon"


def test_the_engines_process_is_named(tmp_path: Path) -> None:
    ready = make_ready(tmp_path, "http://127.0.0.1:8000")
    assert "(process 3)" in ready_screen(ready)
    assert "(process 3, its engine 7)" in ready_screen(replace(ready, engine_pids=(7,)))
    assert "(process 3, its engines 7, 8)" in ready_screen(replace(ready, engine_pids=(7, 8)))


def test_every_model_is_named_and_the_first_is_asked(tmp_path: Path) -> None:
    ready = replace(make_ready(tmp_path, "http://127.0.0.1:8000"), models=("small", "large"))
    assert "Models   small, large" in ready_screen(ready)
    assert '"model": "small"' in ready_screen(ready)


def test_the_grpc_server_is_named_if_there_is_one(tmp_path: Path) -> None:
    ready = make_ready(tmp_path, "http://127.0.0.1:8000")
    assert "gRPC" not in ready_screen(ready)
    assert "\n  gRPC     127.0.0.1:50051\n" in ready_screen(replace(ready, grpc="127.0.0.1:50051"))
