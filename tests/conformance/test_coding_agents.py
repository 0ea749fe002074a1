"""Codex and Claude Code as npm carries them, without a terminal: an agent's loop of two calls and an answer.

They reach nothing but the server: whatever else they ask for goes to a proxy that is not there.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.binaries import require
from tests.conformance.clients import run_alone
from tests.journeys.server import Server

OFFLINE = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
TASK = "how many notes are in notes.txt?"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What the agents look into."""
    (tmp_path / "notes.txt").write_text("one\ntwo\nthree\n")
    return tmp_path


def lines(printed: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]


@pytest.mark.timeout(1200)
def test_codex_looks_counts_and_answers(agent: Server, folder: Path) -> None:
    provider = f'{{name = "Axon", base_url = "{agent.url}/v1", env_key = "AXON_KEY", wire_api = "responses"}}'
    command = [
        *(str(require("codex")), "exec", "--json", "--ephemeral", "--skip-git-repo-check"),
        *("--sandbox", "danger-full-access", "--model", "echo"),
        *("-c", 'model_provider = "axon"', "-c", f"model_providers.axon = {provider}"),
        *("-c", 'web_search = "disabled"', TASK),
    ]
    said = lines(run_alone(command, cwd=folder, settings={"AXON_KEY": agent.key, **OFFLINE}))
    done = [event["item"] for event in said if event["type"] == "item.completed"]
    ran = [(item["aggregated_output"], item["exit_code"]) for item in done if item["type"] == "command_execution"]
    words = [item["text"] for item in done if item["type"] == "agent_message"]
    assert ran == [("one\ntwo\nthree\n", 0), ("3\n", 0)]
    assert words == ["I look.", "There are 3 notes."]
    assert said[-1]["type"] == "turn.completed"
    assert said[-1]["usage"]["input_tokens"] > said[-1]["usage"]["cached_input_tokens"] > 0


@pytest.mark.timeout(1200)
def test_claude_code_reads_counts_and_answers(agent: Server, folder: Path) -> None:
    command = [str(require("claude")), "-p", TASK, "--model", "echo", "--output-format", "stream-json", "--verbose"]
    settings = {
        "ANTHROPIC_BASE_URL": agent.url,
        "ANTHROPIC_API_KEY": agent.key,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        **OFFLINE,
    }
    said = lines(run_alone(command, cwd=folder, settings=settings))
    blocks = [
        block for event in said if event["type"] in ("assistant", "user") for block in event["message"]["content"]
    ]
    assert [block["type"] for block in blocks] == ["text", "tool_use", "tool_result", "tool_use", "tool_result", "text"]
    assert [block["name"] for block in blocks if block["type"] == "tool_use"] == ["Read", "Bash"]
    results = [block["content"] for block in blocks if block["type"] == "tool_result"]
    assert "three" in results[0]
    assert results[1] == "3"
    assert said[-1]["result"] == "There are 3 notes."
    assert not said[-1]["is_error"]
    assert said[-1]["usage"]["cache_read_input_tokens"] > 0
