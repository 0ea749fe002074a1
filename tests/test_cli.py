"""The command line: every command has help with an example, and errors say what to do."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from axon import cli
from axon.bootstrap.ready import Ready
from axon.console.serving.screen import ready_screen
from tests.console.program import SOURCE, Axon
from tests.services import process

COMMANDS = [
    *(["serve"], ["chat"], ["version"], ["monitoring"], ["config", "show"], ["models", "list"]),
    *(
        ["keys", "create"],
        ["keys", "list"],
        ["keys", "rotate"],
        ["keys", "revoke"],
        ["usage"],
        ["audit"],
        ["trace"],
        ["size"],
    ),
    *(["tenants", name] for name in ("list", "create", "show", "change", "suspend", "resume", "remove")),
    *(["plans", name] for name in ("list", "create", "show", "change", "remove")),
    *(["models", name] for name in ("show", "remove")),
    *(["deployments", name] for name in ("list", "create", "show", "change", "remove")),
    *(["aliases", name] for name in ("list", "set", "remove")),
    *(["prices", name] for name in ("list", "add")),
    *(["backup", name] for name in ("create", "verify", "restore", "settle")),
    *(["profile", name] for name in ("cpu", "memory", "steps", "processes")),
]


@pytest.fixture
def axon(tmp_path: Path) -> "Axon":
    return Axon(tmp_path)


@pytest.fixture
def free_port() -> int:
    return process.free_port()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(axon: Axon, command: list[str]) -> None:
    shown = axon(*command, "--help")
    assert shown.returncode == 0
    assert f"axon {' '.join(command)}" in shown.stdout.partition("Example")[2]


def test_help_imports_nothing_heavy(axon: Axon) -> None:
    code = (
        "import sys, axon.cli\n"
        "try: axon.cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'fastapi', 'sqlalchemy', 'pydantic', 'httpx', 'numpy', 'structlog', 'uvicorn'}\n"
        "print('heavy:', sorted(heavy & set(sys.modules)))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(SOURCE)}, capture_output=True, text=True
    )
    assert ran.stdout.splitlines()[-1] == "heavy: []"


def test_version_names_axon_and_python(axon: Axon) -> None:
    assert axon.cold("version").stdout.startswith("axon ")
    assert set(json.loads(axon("version", "--json").stdout)) == {"axon", "python"}


def test_config_show_says_where_each_value_came_from_and_hides_secrets(axon: Axon) -> None:
    shown = axon("config", "show", "--json", "--set", "engine.threads=2", AXON_PEPPER="canary")
    values = json.loads(shown.stdout)
    assert values["engine.threads"] == {"value": 2, "from": "flag"}
    assert values["data_dir"]["from"] == "AXON_DATA_DIR"
    assert values["gateway.port"] == {"value": 8000, "from": "default"}
    assert "canary" not in shown.stdout + axon("config", "show", AXON_PEPPER="canary").stdout


def test_config_show_describes_every_setting(axon: Axon) -> None:
    table = axon("config", "show", "--describe").stdout
    assert "gateway.header_timeout_s" in table
    assert "readable" not in axon("config", "show").stderr
    assert len(json.loads(axon("config", "show", "--describe", "--json").stdout)) > 30


@pytest.mark.parametrize(
    ("arguments", "environ", "said"),
    [
        (["config", "show"], {"AXON_GATEWAY_PROT": "1"}, "Did you mean AXON_GATEWAY_PORT?"),
        (["config", "show", "--set", "engine.threads"], {}, "write NAME=VALUE"),
        (["config", "show", "--config", "missing.toml"], {}, "does not exist"),
        (["serve", "--port", "99999"], {}, "from 0 to 65535"),
        (["chat", "--url", "nonsense"], {}, "is no address"),
    ],
)
def test_misuse_is_one_line_and_exit_code_2(
    axon: Axon, arguments: list[str], environ: dict[str, str], said: str
) -> None:
    ran = axon(*arguments, **environ)
    assert ran.returncode == 2
    assert ran.stderr.startswith("axon: ")
    assert said in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_an_unknown_flag_is_exit_code_2(axon: Axon) -> None:
    assert axon("serve", "--prot", "1").returncode == 2


@pytest.mark.parametrize("command", [["chat"], ["models", "list"]], ids=" ".join)
def test_without_a_server_one_is_told_how_to_start_it(axon: Axon, free_port: int, command: list[str]) -> None:
    ran = axon(*command, "--url", f"http://127.0.0.1:{free_port}")
    assert ran.returncode == 1
    assert "axon serve" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_models_on_disk_are_listed_when_no_server_runs(axon: Axon, tmp_path: Path, free_port: int) -> None:
    folder = tmp_path / "data" / "models"
    (folder / "Qwen3-0.6B").mkdir(parents=True)
    (folder / "Qwen3-0.6B" / "model.safetensors").touch()
    (folder / "tiny.gguf").touch()
    (folder / "notes").mkdir()
    ran = axon("models", "list", "--json", AXON_GATEWAY_PORT=str(free_port))
    assert [each["id"] for each in json.loads(ran.stdout)] == ["smollm2-135m-instruct", "Qwen3-0.6B", "tiny"]


@pytest.mark.parametrize("key", ["axk_some", None])
def test_the_ready_screen_has_a_curl_that_can_be_pasted(key: str | None, tmp_path: Path) -> None:
    key_file = tmp_path / "a folder" / "dev-key"
    screen = ready_screen(
        Ready(
            url="http://127.0.0.1:1",
            metrics_url="http://127.0.0.1:2/metrics",
            key=key,
            key_file=key_file,
            models=("m",),
            pid=3,
        )
    )
    assert "http://127.0.0.1:2/metrics" in screen
    key_file.parent.mkdir()
    key_file.write_text("axk_some\n")
    command = screen[screen.index("curl ") :].partition("\n\n")[0]
    pasted = subprocess.run(
        ["bash", "-c", command.replace("curl", "printf '%s\\n'", 1)], capture_output=True, text=True, check=True
    )
    url, _, authorization, *_, body = pasted.stdout.splitlines()
    assert (url, authorization) == ("http://127.0.0.1:1/v1/chat/completions", "Authorization: Bearer axk_some")
    assert json.loads(body)["model"] == "m"


def test_the_ready_screen_leads_to_the_console_and_to_a_key_for_it(tmp_path: Path) -> None:
    ready = Ready(
        url="http://127.0.0.1:1",
        metrics_url="http://127.0.0.1:2/metrics",
        key=None,
        key_file=tmp_path / "a folder" / "dev-key",
        models=("m",),
        pid=3,
    )
    line = next(each for each in ready_screen(ready).splitlines() if "http://127.0.0.1:1/console" in each)
    words = shlex.split(line.partition("administer: ")[2].removesuffix(")"))
    command = words[words.index("keys") :]
    flags = ["--tenant", "ops", "--scope", "admin", "--data-dir", str(tmp_path / "a folder")]
    assert command == ["keys", "create", *flags]


def test_a_group_of_errors_is_told_by_what_is_in_it() -> None:
    lost, wrong = ConnectionError("gone"), ValueError("no")
    assert cli._causes(ExceptionGroup("several", [ExceptionGroup("one", [lost]), wrong])) == [lost, wrong]
    assert cli._causes(wrong) == [wrong]
