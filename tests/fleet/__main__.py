"""A whole fleet on this machine until somebody stops it: services, gateways, workers, control, nginx before them.

python -m tests.fleet                                  the default model, two gateways, two workers, one control
python -m tests.fleet --engine echo --workers 4        no model; answers repeat the prompt
python -m tests.fleet --dir data --port 8000           in a folder that is kept, on a port of your choice
python -m tests.fleet --launcher process               control runs the workers of a registered deployment itself
"""

import argparse
import errno
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from axon.engine.load.convert.gguf import default_gguf
from axon.settings import Settings, load
from tests.fleet.fleet import Fleet
from tests.fleet.member import Member
from tests.fleet.versions import register_echo
from tests.journeys.server import wait_until
from tests.services.__main__ import ignore_signals, in_folder, start
from tests.services.require import find

_COMMANDS = ("redis-server", "rabbitmq-server", "postgres", "nginx")
_START_S = 600.0
"""The first start converts the model."""


def main() -> int:
    options = _options()
    if missing := [command for command in _COMMANDS if find(command) is None]:
        print(f"Not installed: {', '.join(missing)}. Run: make install-services", file=sys.stderr)
        return 1
    if options.port and (why := _refusal(options.port)):
        print(why, file=sys.stderr)
        return 2
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with in_folder(options.dir, "axon-fleet-") as folder, ExitStack() as running:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)  # the services run as somebody else
        try:
            print(f"Starting Redis, RabbitMQ and PostgreSQL in {folder}", flush=True)
            place = start(folder / "services", running)
            fleet = Fleet(folder, place, **_settings(options))
            running.callback(fleet.stop)
            running.enter_context(_logs_shown(fleet))
            roles = {"gateways": options.gateways, "workers": options.workers, "controls": options.controls}
            if options.launcher == "none":
                fleet.start(**roles, edge_port=options.port, timeout_s=_START_S)
            else:
                meanwhile = partial(register, workers=options.workers, is_echo=options.engine == "echo")
                roles["workers"] = 0
                fleet.start(**roles, edge_port=options.port, timeout_s=_START_S, meanwhile=meanwhile)
                wait_for_workers(fleet, options.workers)
            write_environment(environment := folder / "axon.env", fleet)
            print(_screen(fleet, environment), flush=True)
            signal.pause()
        except KeyboardInterrupt:
            print("Stopping", flush=True)
        except AssertionError as error:
            print(error, file=sys.stderr)
            return 1
        finally:
            ignore_signals()  # an impatient second one would leave a process behind
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fleet", description="Runs a whole fleet on this machine.")
    for role, count, least in (("gateways", 2, 1), ("workers", 2, 1), ("controls", 1, 0)):
        told = f"how many {role} [default: {count}]"
        parser.add_argument(f"--{role}", type=_number(least, most=99), default=count, metavar="N", help=told)
    parser.add_argument(
        "--port", type=_number(0, most=65535), default=0, help="of the fleet's address [default: a free one]"
    )
    parser.add_argument("--dir", type=Path, help="a folder to keep; without it, a temporary one")
    parser.add_argument("--model", help="a safetensors folder or .gguf file [default: the packaged one]")
    parser.add_argument("--model-name", help="the name clients ask for it by")
    parser.add_argument("--engine", choices=("axon", "echo"), help="'echo' repeats its prompt without a model")
    parser.add_argument(
        "--launcher",
        choices=("none", "process"),
        default="none",
        help="'process': control starts and stops the workers",
    )
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="any setting of every process")
    return parser.parse_args()


def _number(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least} to {most}")
        return int(text)

    return read


def _refusal(port: int) -> str:
    """Why nginx could not listen there; empty when it can."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as nginx does
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            return f"Port {port} is in use" if error.errno == errno.EADDRINUSE else f"Port {port}: {error.strerror}"
    return ""


def _settings(options: argparse.Namespace) -> dict[str, object]:
    """For every member; workers on one machine share its cores."""
    chosen: dict[str, object] = {
        "models_dir": Settings().models_dir,
        "engine_threads": max(1, (os.cpu_count() or 1) // max(1, options.workers)),
    }
    named = {"model": options.model, "model_name": options.model_name, "engine_kind": options.engine}
    chosen |= {name: value for name, value in named.items() if value is not None}
    if options.launcher != "none":
        chosen["control_launcher"] = options.launcher
    for each in options.set:
        name, _, value = each.partition("=")
        chosen[name.strip().replace(".", "_")] = value
    return chosen


def register(fleet: Fleet, workers: int, is_echo: bool) -> None:
    """Registers the fleet's model with a deployment of its own name, whose workers control starts."""
    settings = load(environ=fleet.gateways[0].environment()).settings
    name = settings.model_name
    print(f"Registering {name}; control starts {workers} workers for it", flush=True)
    if is_echo:
        register_echo(fleet, name)
    else:
        source = str(default_gguf()) if settings.model == "default" else settings.model
        fleet.axon("models", "add", name, source, "--label", "v1", "--deploy", timeout_s=_START_S)
    fleet.axon("deployments", "change", name, "--min-replicas", str(workers), "--max-replicas", str(2 * workers))


def wait_for_workers(fleet: Fleet, workers: int) -> None:
    """Returns when control's workers serve."""

    def serve() -> bool:
        with suppress(subprocess.CalledProcessError):  # control has reported nothing yet
            states = [each["state"] for each in json.loads(fleet.axon("fleet", "status", "--json"))["replicas"]]
            return states.count("ready") >= workers
        return False

    wait_until(serve, f"{workers} workers are ready", _START_S)


def write_environment(path: Path, fleet: Fleet) -> None:
    """What a command of the operator's needs to meet the fleet, for a shell to read; for its owner alone."""
    own = {name: value for name, value in fleet.gateways[0].environment().items() if name.startswith("AXON_")}
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in {**own, "AXON_URL": fleet.url}.items()]
    path.touch(0o600)
    path.write_text("".join(lines))


def _screen(fleet: Fleet, environment: Path) -> str:
    with fleet.client() as http:
        model = http.get("/v1/models").json()["data"][0]["id"]
    members = "\n".join(f"  {each.name:<10} {_address(each)}" for each in fleet.members)
    replicas = fleet.data_dir / "replicas"
    runs = f"\n  Control runs the workers: `axon fleet status` shows them; their logs are in {replicas}.\n"
    question = "What is the capital of France?"
    axon = shlex.quote(str(Path(sys.executable).with_name("axon")))
    return f"""
  The fleet is ready: {fleet.url}/v1   (nginx before the gateways)

{members}
{runs if replicas.exists() else ""}
  Key        {fleet.key}
  Model      {model}

curl {fleet.url}/v1/chat/completions \\
  -H "Authorization: Bearer {fleet.key}" -H "Content-Type: application/json" \\
  -d '{{"model": "{model}", "messages": [{{"role": "user", "content": "{question}"}}], "temperature": 0}}'

{axon} chat --url {fleet.url} --key {fleet.key}

For the operator, in another shell (axon.env has the settings by which commands meet this fleet):

. {shlex.quote(str(environment))} && {axon} keys create --tenant acme

  Logs, settings and keys are in {shlex.quote(str(fleet.folder))}; ctrl-c stops everything.
"""


def _address(member: Member) -> str:
    api = f"{member.url}/v1   " if member.role == "gateway" else ""
    return f"{api}metrics and probes: {member.probe_url}   (process {member.pid})"


@contextmanager
def _logs_shown(fleet: Fleet) -> Iterator[None]:
    """Prints what the members write, each line behind its member's name, and which of them ended."""
    over = threading.Event()
    thread = threading.Thread(target=_show_logs, args=(fleet, over), name="logs", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def without_screens(log: str) -> str:
    """A member's log without the screen that each shows when it is up: the fleet has one for all."""
    return re.sub(r"^  Axon \S+ .*?\(process \d+[^)\n]*\)\n", "", log, flags=re.MULTILINE | re.DOTALL)


def _show_logs(fleet: Fleet, over: threading.Event) -> None:
    read: dict[str, int] = {}
    ended: set[str] = set()
    while not over.wait(0.1):
        for member in list(fleet.members):
            if not member.log_path.exists():
                continue
            code = member.exit_code  # before its last lines are read
            with member.log_path.open("rb") as log:
                log.seek(read.get(member.name, 0))
                lines = log.read().splitlines(keepends=True)
            whole = [line for line in lines if line.endswith(b"\n")]  # the rest of a line is still on its way
            read[member.name] = read.get(member.name, 0) + sum(map(len, whole))
            for line in without_screens("".join(line.decode(errors="replace") for line in whole)).splitlines():
                if text := line.rstrip():
                    print(f"{member.name:<10} | {text}", flush=True)
            if code is not None and member.name not in ended:
                ended.add(member.name)
                print(f"{member.name} ended ({f'signal {-code}' if code < 0 else f'exit {code}'})", flush=True)


if __name__ == "__main__":
    sys.exit(main())
