"""The command line: every command has help with an example, and errors say what to do."""

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from axon import cli
from axon.bootstrap.gateway import Ready
from axon.console.serving import ready_screen
from axon.domain.key import parse_key
from tests.services import process, warm

SOURCE = Path(__file__).resolve().parent.parent / "src"
COMMANDS = [
    *(["serve"], ["chat"], ["version"], ["config", "show"], ["models", "list"]),
    *(["keys", "create"], ["keys", "list"], ["keys", "rotate"], ["keys", "revoke"], ["usage"]),
    *(["tenants", name] for name in ("list", "create", "show", "change", "suspend", "resume", "remove")),
    *(["plans", name] for name in ("list", "create", "show", "change", "remove")),
    *(["models", name] for name in ("show", "remove")),
    *(["deployments", name] for name in ("list", "create", "show", "change", "remove")),
    *(["aliases", name] for name in ("list", "set", "remove")),
    *(["prices", name] for name in ("list", "add")),
]


@pytest.fixture
def axon(tmp_path: Path) -> "Axon":
    return Axon(tmp_path)


class Axon:
    """The program, run as a person does, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, *arguments: str, stdin: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
        return warm.run(arguments, environ=self._environ(environ), folder=self._folder, said=stdin)

    def cold(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """By an interpreter of its own, which has imported nothing."""
        command = [sys.executable, "-m", "axon", *arguments]
        return subprocess.run(
            command, cwd=self._folder, env=self._environ({}), capture_output=True, text=True, timeout=60
        )

    @contextmanager
    def on_a_terminal(self, *arguments: str) -> Iterator["Typed"]:
        master, slave = os.openpty()
        command = [sys.executable, "-m", "axon", *arguments]
        with _interruptible():
            process = subprocess.Popen(
                command, cwd=self._folder, env=self._environ({}), stdin=slave, stdout=slave, stderr=slave
            )
        with process:
            os.close(slave)
            try:
                yield Typed(process, master)
            finally:
                process.kill()
                os.close(master)

    def _environ(self, more: dict[str, str]) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("AXON_")}
        return inherited | {"PYTHONPATH": str(SOURCE), "AXON_DATA_DIR": str(self._folder / "data")} | more


@contextmanager
def _interruptible() -> Iterator[None]:
    """Gives a child SIGINT's default action: a test run in the background ignores SIGINT, and children inherit that.

    A handler does not outlive exec; only SIG_IGN does.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Typed:
    """A program at a terminal, and the person in front of it."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self._master = master
        self._seen = ""
        self.passed = ""
        """What came before the text that was waited for last."""

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, text: str) -> None:
        """Reads until the text has come; what came before it is forgotten."""
        deadline = time.monotonic() + 30
        while text not in self._seen:
            ready, _, _ = select.select([self._master], [], [], deadline - time.monotonic())
            assert ready, f"{text!r} did not come, only {self._seen!r}"
            self._seen += os.read(self._master, 4096).decode()
        self.passed, _, self._seen = self._seen.partition(text)


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


class Recorded(BaseHTTPRequestHandler):
    """A server that answers every chat with how many messages it was sent."""

    asked: ClassVar[list[Any]] = []
    stopped: ClassVar[list[str]] = []
    hung_up: ClassVar[threading.Event] = threading.Event()

    def do_GET(self) -> None:
        self._answer(200, json.dumps({"data": [{"id": "small"}, {"id": "large"}]}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers["authorization"] != "Bearer good":
            self._answer(401, json.dumps({"error": {"message": "no"}}))
            return
        self.asked.append(body)
        if "slow" in body["messages"][-1]["content"]:
            self._answer(200, 'data: {"choices": [{"delta": {"content": "well"}}]}\n\n')
            self.hung_up.wait(30)
            return
        if "fail" in body["messages"][-1]["content"]:
            self._answer(400, json.dumps({"error": {"message": "The prompt is too long."}}))
            return
        words = [body["model"], " heard ", str(len(body["messages"]))]
        chunks = [{"choices": [{"delta": {"content": word}}]} for word in words]
        self._answer(200, "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n")

    def do_DELETE(self) -> None:
        self.stopped.append(self.path)
        self._answer(200, json.dumps({"status": "cancelled"}))

    def _answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("x-axon-stream", f"chatcmpl-{len(self.asked)}")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server_url() -> Iterator[str]:
    Recorded.asked.clear()
    Recorded.stopped.clear()
    Recorded.hung_up.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Recorded) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        Recorded.hung_up.set()
        server.shutdown()
        thread.join()


def test_chat_asks_piped_lines_one_after_the_other_and_keeps_the_conversation(axon: Axon, server_url: str) -> None:
    ran = axon("chat", "--url", server_url, "--key", "good", "--system", "Be brief.", stdin="one\n\ntwo\n")
    assert (ran.stdout, ran.returncode) == ("small heard 2\nsmall heard 4\n", 0)
    assert [message["role"] for message in Recorded.asked[1]["messages"]] == ["system", "user", "assistant", "user"]


def test_chat_knows_its_commands(axon: Axon, server_url: str) -> None:
    lines = "one\n/model\n/model large\n/reset\ntwo\n/nonsense\n/model none\n/quit\nthree\n"
    ran = axon("chat", stdin=lines, AXON_URL=f"{server_url}/v1", AXON_API_KEY="good")
    assert ran.stdout.splitlines() == [
        "small heard 1",
        "* small",
        "  large",
        "Talking to large.",
        "Forgotten.",
        "large heard 1",
        "/nonsense is no command; /help lists them.",
    ]
    assert "it has: small, large" in ran.stderr


def test_chat_takes_the_development_key_and_goes_on_after_a_refusal(
    axon: Axon, server_url: str, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "dev-key").write_text("good\n")
    ran = axon("chat", "--url", server_url, stdin="fail\nthen\n")
    assert (ran.stdout, ran.returncode) == ("small heard 1\n", 1)
    assert ran.stderr == "axon: The prompt is too long.\n"


def test_chat_with_a_wrong_key_says_where_to_get_one(axon: Axon, server_url: str) -> None:
    ran = axon("chat", "--url", server_url, "--key", "bad", stdin="hello\n")
    assert ran.returncode == 1
    assert "axon keys create" in ran.stderr


def test_ctrl_c_stops_the_answer_and_not_the_chat(axon: Axon, server_url: str, tmp_path: Path) -> None:
    with axon.on_a_terminal("chat", "--url", server_url, "--key", "good") as typed:
        typed.wait_for("> ")
        typed.type("be slow\n")
        typed.wait_for("well")
        typed.process.send_signal(signal.SIGINT)
        typed.wait_for("(stopped)")
        assert Recorded.stopped == ["/v1/streams/chatcmpl-1"]
        typed.wait_for("> ")
        typed.type("next\n")
        typed.wait_for("small heard 3")
        typed.wait_for("> ")
        typed.type("\x04")
        assert typed.process.wait(timeout=60) == 0
    history = tmp_path / "data" / "chat-history"
    assert "be slow" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0


def test_keys_are_made_listed_and_revoked(axon: Axon) -> None:
    made = axon("keys", "create", "--tenant", "acme", "--name", "laptop")
    assert made.returncode == 0, made.stderr
    key = parse_key(made.stdout.strip())
    assert key is not None
    assert made.stdout.strip() not in made.stderr
    (listed,) = json.loads(axon("keys", "list", "--json").stdout)
    assert (listed["id"], listed["tenant"], listed["name"], listed["status"]) == (key.id, "acme", "laptop", "valid")
    assert key.id in axon("keys", "list").stdout
    assert axon("keys", "revoke", key.id).returncode == 0
    assert json.loads(axon("keys", "list", "--json").stdout)[0]["status"] == "revoked"


def test_a_key_made_for_a_machine_is_json(axon: Axon) -> None:
    made = json.loads(axon("keys", "create", "--expires-in", "1d", "--json").stdout)
    assert parse_key(made["key"]) is not None
    assert made["expires_at"] == made["created_at"] + 86400


@pytest.mark.parametrize(
    "bad", [["--expires-in", "9999999w"], ["--expires-in", "1"], ["--tenant", ""], ["--tenant", "a\nb"]]
)
def test_a_key_that_could_not_be_listed_is_not_made(axon: Axon, bad: list[str]) -> None:
    assert axon("plans", "create", "pro").returncode == 0
    ran = axon("keys", "create", *bad)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"axon: {bad[0]} ")
    assert json.loads(axon("keys", "list", "--json").stdout) == []


def test_a_key_has_the_scopes_it_is_given_and_its_successor_has_them_too(axon: Axon) -> None:
    made = json.loads(axon("keys", "create", "--tenant", "ops", "--scope", "admin", "--scope", "read", "--json").stdout)
    assert made["scopes"] == ["admin", "read"]
    rotated = axon("keys", "rotate", made["key"], "--overlap", "10m")
    new = parse_key(rotated.stdout.strip())
    assert new is not None, rotated.stderr
    old, successor = json.loads(axon("keys", "list", "--tenant", "ops", "--json").stdout)
    assert (old["id"], old["status"], old["expires_at"] is None) == (made["id"], "valid", False)
    assert (successor["id"], successor["previous"], successor["scopes"]) == (new.id, old["id"], ["admin", "read"])
    axon("keys", "revoke", made["id"])
    again = axon("keys", "rotate", made["id"])
    assert (again.returncode, again.stdout) == (1, "")
    assert "revoked" in again.stderr


def test_listing_keys_makes_no_secret_to_hash_them_with(axon: Axon, tmp_path: Path) -> None:
    assert axon("plans", "create", "pro").returncode == 0
    for command in (["keys", "list"], ["tenants", "list"], ["usage"]):
        assert axon(*command).returncode == 0
    assert not (tmp_path / "data" / "pepper").exists()


def test_tenants_and_plans_are_made_shown_changed_and_removed(axon: Axon) -> None:
    limits = ["--limit", "weight=4", "--limit", "models=small,large", "--limit", "highest_tier=flex"]
    assert axon("plans", "create", "pro", *limits).returncode == 0
    assert "axon tenants create" in axon("tenants", "list").stderr
    _, plan = json.loads(axon("plans", "list", "--json").stdout)  # behind the default one
    set_ = {"weight": 4.0, "highest_tier": "flex", "models": ["small", "large"]}
    assert plan == {"id": "pro", "object": "plan", "limits": set_}
    assert json.loads(axon("plans", "show", "pro", "--json").stdout) == plan
    assert "small,large" in axon("plans", "show", "pro").stdout
    assert "models=small,large" in axon("plans", "list").stdout
    made = axon("tenants", "create", "acme", "--name", "Acme", "--plan", "pro", "--limit", "concurrent=3", "--json")
    assert json.loads(made.stdout)["limits"] == {"concurrent": 3}
    shown = json.loads(axon("tenants", "show", "acme", "--json").stdout)
    assert (shown["place"], shown["terms"]["weight"], shown["terms"]["concurrent"]) == (0, 4.0, 3)
    assert shown["plan_limits"] == set_
    _, table, stored = axon("tenants", "show", "acme").stdout.split("\n\n")
    held = {line.split()[0]: line.split()[1:] for line in table.splitlines()}
    assert stored == "stored: 0 bytes in 0 objects\n"
    assert held["weight"] == ["-", "4", "4"]
    assert held["tokens_per_day"] == ["-", "-", "no", "limit"]
    changed = axon("tenants", "change", "acme", "--limit", "weight=2", "--unset", "concurrent", "--json")
    assert (json.loads(changed.stdout)["limits"], json.loads(changed.stdout)["name"]) == ({"weight": 2.0}, "Acme")
    axon("plans", "change", "pro", "--limit", "queued=7", "--unset", "weight")
    assert json.loads(axon("tenants", "show", "acme", "--json").stdout)["terms"]["queued"] == 7
    assert axon("tenants", "suspend", "acme").returncode == 0
    assert "suspended" in axon("tenants", "list").stdout
    assert axon("tenants", "resume", "acme").returncode == 0
    assert json.loads(axon("tenants", "list", "--json").stdout)[0]["status"] == "active"
    assert axon("plans", "remove", "pro").returncode == 1
    assert axon("tenants", "remove", "acme").returncode == 0
    for again in (("tenants", "create", "acme"), ("keys", "create", "--tenant", "acme")):
        refused = axon(*again)
        assert (refused.returncode, refused.stdout) == (1, ""), "what acme had would be read by whoever gets its id"
        assert "There was a tenant acme" in refused.stderr
    assert axon("plans", "remove", "pro").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tenants", "create", "acme", "--limit", "wieght=2"], "Did you mean weight?"),
        (["tenants", "create", "acme", "--limit", "weight"], "write NAME=VALUE"),
        (["tenants", "create", "acme", "--limit", "weight=much"], "--limit weight=much: it must be a number"),
        (["tenants", "create", "acme", "--limit", "weight=0"], "--limit weight=0: it must be from 0.001 to 1000"),
        (["tenants", "create", "acme", "--limit", "weight=1", "--limit", "weight=2"], "twice"),
        (["tenants", "create", "acme", "--limit", "kv_share=0"], "more than 0 and at most 1"),
        (["tenants", "create", "acme", "--limit", "kv_share=nan"], "more than 0 and at most 1"),
        (["tenants", "create", "acme", "--limit", "reserved=1.5"], "from 0 to 1, not 1.5"),
        (["tenants", "create", "acme", "--limit", "requests_per_minute=nan"], "it must be 0 or more, not nan"),
        (["tenants", "create", "acme", "--limit", "requests_per_minute=-1"], "it must be 0 or more, not -1"),
        (["tenants", "create", "acme", "--limit", "tokens_per_minute=inf"], "it must be at most 9007199254740992"),
        (["tenants", "create", "acme", "--limit", "concurrent=1.5"], "it must be a whole number"),
        (["tenants", "create", "acme", "--limit", "pool=a b/c"], "small letters"),
        (["tenants", "create", "acme", "--limit", "highest_tier=urgent"], "flex, default, priority"),
        (["tenants", "create", "acme", "--name", "a\nb"], "--name 'a\\nb': it must be text"),
        (["tenants", "create", "a b"], "ID 'a b': it must have 1 to 64 letters, digits"),
        (["tenants", "change", "nobody", "--unset", "nothing"], "is no limit"),
        (["tenants", "change", "nobody", "--unset", "weight", "--limit", "weight=3"], "twice"),
        (["tenants", "change", "nobody"], "--name, --plan, --limit or --unset"),
        (["plans", "create", "a b"], "NAME 'a b': it must have 1 to 64 letters, digits"),
        (["plans", "change", "gold"], "--limit or --unset"),
        (["keys", "create", "--expires-in", "999999999d"], "--expires-in 999999999d: it must be more than 0 and"),
        (["keys", "rotate", "nonesuch", "--overlap", "soon"], "such as 30d"),
        (["keys", "rotate", "nonesuch", "--overlap", "31d"], "--overlap 31d: it must be at most 30d"),
        (["usage", "--since", "yesterday"], "2026-11-15"),
        (["usage", "--since", "2026-11-02", "--until", "2026-11-01"], "--since must be earlier than --until"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_told_in_one_line_by_its_flag_with_exit_code_2(
    axon: Axon, tmp_path: Path, arguments: list[str], said: str
) -> None:
    ran = axon(*arguments)
    assert (ran.returncode, ran.stdout, len(ran.stderr.splitlines())) == (2, "", 1), ran.stderr
    assert said in ran.stderr
    assert not (tmp_path / "data").exists()


def test_what_is_not_there_is_told_in_one_line_with_exit_code_1(axon: Axon) -> None:
    assert axon("plans", "create", "pro").returncode == 0
    for arguments, said in (
        (["tenants", "create", "acme", "--plan", "gold"], "no plan 'gold'"),
        (["tenants", "show", "nobody"], "no tenant 'nobody'"),
        (["plans", "show", "gold"], "no plan 'gold'"),
        (["plans", "change", "gold", "--limit", "weight=2"], "no plan 'gold'"),
        (["keys", "rotate", "nonesuch"], "no key 'nonesuch'"),
        (["keys", "revoke", "nonesuch"], "axon keys list"),
        (["keys", "list", "--tenant", "nobody"], "no tenant 'nobody'"),
        (["usage", "--tenant", "nobody"], "no tenant 'nobody'"),
    ):
        ran = axon(*arguments)
        assert (ran.returncode, ran.stdout, len(ran.stderr.splitlines())) == (1, "", 1), (arguments, ran.stderr)
        assert said in ran.stderr


def test_a_tenant_with_nothing_is_known_and_so_is_a_removed_ones_key(axon: Axon) -> None:
    made = axon("keys", "create", "--tenant", "acme", "--json")
    assert "Tenant acme was made" in made.stderr
    assert axon("tenants", "create", "idle").returncode == 0
    assert axon("keys", "list", "--tenant", "idle").returncode == 0
    assert axon("usage", "--tenant", "idle").returncode == 0
    axon("keys", "revoke", json.loads(made.stdout)["id"])
    assert axon("tenants", "remove", "acme").returncode == 0
    assert axon("usage", "--tenant", "acme").returncode == 0


@pytest.mark.parametrize(
    "command",
    [["tenants", "list"], ["tenants", "suspend", "acme"], ["plans", "show", "pro"], ["keys", "list"], ["usage"]],
    ids=" ".join,
)
def test_a_command_that_makes_nothing_makes_no_store(axon: Axon, tmp_path: Path, command: list[str]) -> None:
    ran = axon(*command)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert f"There is no store at {tmp_path / 'data' / 'axon.db'}" in ran.stderr
    assert not (tmp_path / "data").exists()


def test_more_reserved_than_there_is_is_done_and_warned_of(axon: Axon) -> None:
    assert axon("plans", "create", "half", "--limit", "reserved=0.5").stderr == ""
    assert axon("tenants", "create", "usual").stderr == ""
    for tenant in ("one", "two"):
        assert axon("tenants", "create", tenant, "--plan", "half").stderr == ""
    apart = axon("tenants", "create", "apart", "--limit", "reserved=0.5", "--limit", "pool=gold")
    assert apart.stderr == ""
    changed = axon("plans", "change", "half", "--limit", "reserved=0.6")
    assert changed.returncode == 0
    assert "1.2 of every shared worker's slots" in changed.stderr
    assert "1.3 of" in axon("plans", "create", "default", "--limit", "reserved=0.1").stderr
    assert "1.4 of" in axon("keys", "create", "--tenant", "three").stderr


def test_no_keys_is_said_in_words(axon: Axon) -> None:
    assert axon("plans", "create", "pro").returncode == 0
    ran = axon("keys", "list")
    assert ran.returncode == 0, ran.stderr
    assert "axon keys create" in ran.stderr


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


def test_a_group_of_errors_is_told_by_what_is_in_it() -> None:
    lost, wrong = ConnectionError("gone"), ValueError("no")
    assert cli._causes(ExceptionGroup("several", [ExceptionGroup("one", [lost]), wrong])) == [lost, wrong]
    assert cli._causes(wrong) == [wrong]
