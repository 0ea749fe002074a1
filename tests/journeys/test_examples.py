"""The examples do what they say."""

import os
import subprocess
import sys

import pytest

from tests.journeys.server import REPOSITORY, Server

EXAMPLES = REPOSITORY / "examples"


def run(server: Server, name: str, *arguments: str) -> str:
    own = {"AXON_URL": server.url, "AXON_API_KEY": server.key}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_chat_is_streamed(echo: Server) -> None:
    assert "is anybody there?" in run(echo, "chat.py", "is anybody there?")


def test_a_conversation_is_kept_and_erased(echo: Server) -> None:
    shown = run(echo, "kept_conversation.py", "My name is Ada.", "What is my name?")
    assert shown.count("user: My name is Ada.") >= 2  # the second answer was told the first question
    assert shown.endswith("The server kept 4 items, and has forgotten them now.\n")


def test_a_background_response_is_read_later(slow: Server) -> None:
    shown = run(slow, "background.py", "no hurry")
    assert "is completed:\nuser: no hurry" in shown


def test_a_stream_that_is_cut_loses_nothing(slow: Server) -> None:
    shown = run(slow, "resumed_stream.py", "is anybody there?")
    assert shown.startswith("user: is anybody there?\nassistant:")
    assert "over 5 connections" in shown


def test_every_example_is_run_here() -> None:
    run_here = {"chat.py", "kept_conversation.py", "background.py", "resumed_stream.py"}
    assert {path.name for path in EXAMPLES.iterdir()} == {*run_here, "curl.sh"}


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.iterdir()))
def test_an_example_without_a_key_says_so_in_a_sentence(name: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AXON_")}
    command = ["sh"] if name.endswith(".sh") else [sys.executable]
    ran = subprocess.run([*command, str(EXAMPLES / name)], env=environment, capture_output=True, text=True, timeout=60)
    assert ran.returncode != 0
    assert "AXON_API_KEY" in ran.stderr
    assert "axon keys create" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1, ran.stderr


def test_curl_is_enough(slow: Server) -> None:
    own = {"AXON_URL": slow.url, "AXON_API_KEY": slow.key}
    command = ["sh", str(EXAMPLES / "curl.sh")]
    done = subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    parts = done.stdout.split("== ")
    assert "What is the capital of France?" in parts[1]
    assert '"end":true' not in parts[2]
    assert '"end":true' in parts[3]
    assert "data: [DONE]" in parts[3]
    assert "What is the capital of France?" in parts[4]
