"""Writes docs/pictures/axon-trace.svg: ``axon trace`` of a real turn whose engine was killed, as a terminal shows it.

    python scripts/trace_picture.py

It starts an embedded server with models that need no weights, has tenants ask them, ends the engines of one while it
answers a request, and draws what ``axon trace`` and ``axon trace --slowest`` print then.
"""

import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import httpx
from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text
from top_picture import made_key, serving

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "axon-trace.svg"
WIDTH = 118
KILLED_AFTER = 60
"""Pieces of the answer that are read before its engine is ended."""
TEXT = "Where is my parcel, and when will it be here? " * 30


def main() -> None:
    """Writes the picture."""
    with tempfile.TemporaryDirectory() as name, serving(Path(name)) as url:
        folder = Path(name)
        key, admin = made_key(folder, "acme"), made_key(folder, "ops", "--scope", "admin")
        others = [threading.Thread(target=answer, args=(url, key, "support"), daemon=True) for _ in range(12)]
        for each in others:
            each.start()
        request_id = answer(url, key, "support", kill_after=KILLED_AFTER)
        for each in others:
            each.join(60)
        shown = [(f"axon trace {request_id}", said(url, admin, request_id))]
        shown.append(("axon trace --slowest 5", said(url, admin, "--slowest", "5")))
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for command, text in shown:
        console.print(Text(f"$ {command}", style="bold"))
        console.print(Text(text))
    svg = console.export_svg(title="axon trace", theme=SVG_EXPORT_THEME, unique_id="axon-trace")
    # The picture loads nothing from other hosts.
    PICTURE.write_text(re.sub(r"@font-face \{.*?\}\n?", "", svg, flags=re.DOTALL))
    print(f"{PICTURE} is written.")


def answer(url: str, key: str, model: str, kill_after: int | None = None) -> str:
    """Reads one answer to its end, with its engine ended on the way if asked for; returns the request's id."""
    body = {"model": model, "messages": [{"role": "user", "content": TEXT}], "stream": True, "max_tokens": 200}
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, headers=headers, timeout=60) as response:
        for number, _ in enumerate(response.iter_lines()):
            if number == kill_after:
                end_engines()
    return response.headers["x-request-id"]


def end_engines() -> None:
    """Ends every engine of the server that this program has started, at once."""
    found = subprocess.run(["ps", "-eo", "pid,ppid,args"], check=True, capture_output=True, text=True).stdout
    rows = [
        (int(pid), int(parent), command)
        for pid, parent, command in (line.split(None, 2) for line in found.splitlines()[1:])
    ]
    servers = {pid for pid, parent, _ in rows if parent == os.getpid()}
    for pid, parent, command in rows:
        if parent in servers and "axon.engine.process" in command:
            os.kill(pid, signal.SIGKILL)


def said(url: str, key: str, *arguments: str) -> str:
    """What ``axon trace`` prints."""
    command = [sys.executable, "-m", "axon", "trace", *arguments, "--url", url, "--key", key]
    environment = {**os.environ, "COLUMNS": str(WIDTH)}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
