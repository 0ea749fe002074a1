"""A server's terminal output: progress while it starts, one screen when it is ready. Knows no part of the server."""

import asyncio
import os
import shlex
import shutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

import structlog
import uvloop
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from axon.telemetry import logs
from axon.telemetry.build import version

if TYPE_CHECKING:
    from axon.bootstrap.process import Up
    from axon.bootstrap.ready import Ready
    from axon.settings import Settings

Role = Literal["serve", "gateway", "worker", "control"]
_logger = structlog.get_logger("axon.process")


def serve_until_stopped(settings: "Settings", role: Role = "serve", *, opens_page: bool = False) -> int:
    """Runs the server, or one role of it; returns the process's exit code. ``opens_page`` shows the chat in a
    browser."""
    logs.configure(settings.log, service="axon" if role == "serve" else f"axon-{role}")
    progress = StartProgress(Console(stderr=True))

    def on_ready(ready: "Ready | Up") -> None:
        progress.close()
        if logs.writes_json():
            _log_ready(ready, role)
        if shows_banner(settings.log.banner, writes_json=logs.writes_json(), is_one_file=_is_one_file()):
            print(screen(ready, bold=_bold if sys.stdout.isatty() else str), flush=True)
        if opens_page and (page := getattr(ready, "page", "")):
            open_page(page)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            return runner.run(_serving(settings, role, on_ready, progress.update))
        except KeyboardInterrupt:
            return 130
        finally:
            progress.close()


async def _serving(
    settings: "Settings",
    role: Role,
    on_ready: "Callable[[Ready | Up], None]",
    on_progress: Callable[[str, float | None], None],
) -> int:
    """Each role imports what it runs, and nothing of the others."""
    match role:
        case "serve":
            from axon.bootstrap import embedded

            return await embedded.serve(settings, on_ready=on_ready, on_progress=on_progress)
        case "gateway":
            from axon.bootstrap.gateway import gateway

            return await gateway.serve(settings, on_ready=on_ready)
        case "worker":
            from axon.bootstrap.worker import worker

            return await worker.serve(settings, on_ready=on_ready, on_progress=on_progress)
        case "control":
            from axon.bootstrap.control import control

            return await control.serve(settings, on_ready=on_ready)


def open_page(address: str) -> None:
    """Opens a page in the browser of this machine, where there is one. In a thread: some browsers keep who starts them
    waiting."""
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


def shows_banner(banner: str, *, writes_json: bool, is_one_file: bool) -> bool:
    """Whether the start screen is printed: not between JSON lines. ``is_one_file``: stdout and stderr are one."""
    return banner != "never" and not (writes_json and is_one_file)


def _is_one_file() -> bool:
    """Whether stdout and stderr are the same file, pipe or terminal; False where one of them is none."""
    try:
        return os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (OSError, ValueError):
        return False


def _log_ready(ready: "Ready | Up", role: Role) -> None:
    """Logs what the screen shows, without the key."""
    from axon.bootstrap.process import Up

    if isinstance(ready, Up):
        facts = dict(ready.facts)
        _logger.info("process.ready", role=role, pid=ready.pid, metrics_url=facts.pop("Metrics", None), facts=facts)
        return
    _logger.info(
        "process.ready",
        role=role,
        pid=ready.pid,
        url=ready.url,
        metrics_url=ready.metrics_url,
        models=list(ready.models),
        key_file=str(ready.key_file),
    )


class StartProgress:
    """A bar for people while a model is converted or loaded; elsewhere one line a stage, in JSON where log lines
    are."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._stage = ""

    def update(self, stage: str, fraction: float | None) -> None:
        """``fraction`` of the stage is done; None when nobody can tell."""
        if logs.writes_json():
            if stage != self._stage:
                _logger.info("process.starting", stage=stage)
        elif not self._console.is_terminal:
            if stage != self._stage:
                self._console.print(f"axon: {stage}", markup=False, highlight=False)
        elif self._bar is None or self._task is None:
            self._bar = Progress(
                *(SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()),
                console=self._console,
                transient=True,
            )
            self._task = self._bar.add_task(stage, total=None)
            self._bar.start()
        if self._bar is not None and self._task is not None:
            total = None if fraction is None else 1.0
            if stage != self._stage:
                self._bar.reset(self._task, total=total, description=stage)
            self._bar.update(self._task, total=total, completed=fraction or 0.0)
        self._stage = stage

    def close(self) -> None:
        """Clears the progress bar. Idempotent."""
        if self._bar is not None:
            self._bar.stop()
        self._bar = self._task = None


def screen(ready: "Ready | Up", *, bold: Callable[[str], str] = str) -> str:
    """Prints one screen about the running process."""
    from axon.bootstrap.process import Up

    return role_screen(ready, bold=bold) if isinstance(ready, Up) else ready_screen(ready, bold=bold)


def role_screen(up: "Up", *, bold: Callable[[str], str] = str) -> str:
    """Describes a role without HTTP API, with the address of its metrics."""
    facts = "\n".join(f"  {name:<8} {value}" for name, value in up.facts)
    return f"""
  {bold(f"Axon {version()} {up.role} is ready")}

{facts}

  ctrl-c stops it (process {up.pid})
"""


def ready_screen(ready: "Ready", *, bold: Callable[[str], str] = str) -> str:
    """Address, key and model, and a command to paste."""
    key_file = shlex.quote(str(ready.key_file))
    key = f"{ready.key}  (kept in {ready.key_file})" if ready.key else f"in {ready.key_file}"
    authorization = f"Bearer {ready.key}" if ready.key else f"Bearer $(cat {key_file})"
    question = "What is the capital of France?"
    engine = _engines(ready.engine_pids)
    fronts = f"   (served by {ready.num_fronts} processes)" if ready.num_fronts else ""
    grpc = f"\n  gRPC     {ready.grpc}" if ready.grpc else ""
    return f"""
  {bold(f"Axon {version()} {'is up and waits for a worker' if ready.waits else 'is ready'}")}

  Chat     {bold(ready.page)}{_for_a_minute(ready)}
  Console  {bold(ready.pages + "/console")}   (with a key that may administer: {_admin_command(ready)})
  API      {bold(ready.url + "/v1")}   (pages: {ready.url}/docs){fronts}{grpc}
  Model{"s" if len(ready.models) > 1 else " "}   {bold(", ".join(ready.models))}
  Key      {key}
  Metrics  {ready.metrics_url}

  Ask it something:

curl {ready.url}/v1/chat/completions \\
  -H "Authorization: {authorization}" -H "Content-Type: application/json" \\
  -d '{{"model": "{ready.models[0]}", "messages": [{{"role": "user", "content": "{question}"}}], "temperature": 0}}'

  or talk to it with: {_chat_command(ready)}

  ctrl-c stops the server (process {ready.pid}{engine})
"""


def _for_a_minute(ready: "Ready") -> str:
    return "   (signs you in once, within a minute)" if ready.code else ""


def _engines(pids: "tuple[int, ...]") -> str:
    if not pids:
        return ""
    return f", its engine {pids[0]}" if len(pids) == 1 else f", its engines {', '.join(map(str, pids))}"


def _chat_command(ready: "Ready") -> str:
    """A line that reaches this server from any folder; it has flags where a bare `axon chat` would look elsewhere."""
    from axon.settings import Settings

    defaults, data_dir = Settings(), ready.key_file.parent
    is_elsewhere = data_dir != defaults.data_dir
    is_other_port = urlsplit(ready.url).port != defaults.gateway.port
    flags = [*(("--url", ready.url) if is_elsewhere or is_other_port else ())]
    flags += ["--data-dir", str(data_dir)] if is_elsewhere else []
    return shlex.join([*_program(), "chat", *flags])


def _admin_command(ready: "Ready") -> str:
    """A line that makes a key for the console in this server's store."""
    from axon.settings import Settings

    data_dir = ready.key_file.parent
    flags = ["--data-dir", str(data_dir)] if data_dir != Settings().data_dir else []
    return shlex.join([*_program(), "keys", "create", "--tenant", "ops", "--scope", "admin", *flags])


def _program() -> list[str]:
    """The words that call this program again, whatever folder they are typed in."""
    called = os.path.abspath(sys.argv[0])
    if called.endswith("__main__.py"):
        return [sys.executable, "-m", "axon"]
    found = shutil.which("axon")
    return ["axon" if found and os.path.realpath(found) == os.path.realpath(called) else called]


def _bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m"
