"""Writes docs/pictures/axon-top.svg: ``axon top`` of a real server with traffic, as a terminal would show it.

    python scripts/top_picture.py

It starts an embedded server with three models that need no weights, has three tenants ask them for a while, and draws
what ``axon top`` sees then.
"""

import asyncio
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import httpx
from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

from axon.console.server.server import Server
from axon.console.top.asking import TIMEOUT_S, History, ask
from axon.console.top.frame import Seen, drawn, picture
from axon.console.top.view import View
from axon.runtime.clock import SystemClock

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "axon-top.svg"
WIDTH, HEIGHT = 132, 30
MODELS = (
    "support=echo;kind=echo;echo_step_s=0.02;max_sequences=8,"
    "translate=echo;kind=echo;echo_step_s=0.012;max_sequences=4,"
    "draft=echo;kind=echo;echo_step_s=0.05;max_sequences=4"
)
ASKED = (("acme", "support", 7), ("globex", "support", 3), ("globex", "translate", 6), ("initech", "draft", 2))
"""Tenant, model, and how many streams it has at once."""
LOAD_S, LOOK_S = 12.0, 3.0
TEXT = "Where is my parcel, and when will it be here? " * 30


def main() -> None:
    """Writes the picture."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as url:
        seen = asyncio.run(looked(Path(folder), url))
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    lines = picture(seen, View(), now=SystemClock().now(), width=WIDTH, height=HEIGHT)
    console.print(drawn(lines), Text(""))
    svg = console.export_svg(title="axon top", theme=SVG_EXPORT_THEME, unique_id="axon-top")
    PICTURE.parent.mkdir(exist_ok=True)
    # The picture loads nothing from other hosts.
    PICTURE.write_text(re.sub(r"@font-face \{.*?\}\n?", "", svg, flags=re.DOTALL))
    print(f"{PICTURE} is written.")


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """A server for the length of a block; yields its URL."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AXON_")}
    environment |= {
        "AXON_DATA_DIR": str(folder / "data"),
        "AXON_MODELS": MODELS,
        "AXON_ZONE": "zone-a",
        "AXON_LOG_LEVEL": "warning",
    }
    environment |= {"AXON_GATEWAY_PORT": "0", "AXON_GATEWAY_METRICS_PORT": "0", "AXON_GATEWAY_PROCESSES": "1"}
    command = [sys.executable, "-m", "axon", "serve"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            screen = ""
            for line in process.stdout:
                screen += line
                if "stops the server" in line:
                    break
            found = re.search(r"(http://\S+)/v1", screen)
            assert found, f"the server did not come up:\n{screen}"
            yield found[1]
        finally:
            process.terminate()


async def looked(folder: Path, url: str) -> Seen:
    """What ``axon top`` sees while tenants ask."""
    keys = {tenant: made_key(folder, tenant) for tenant, _, _ in ASKED}
    history = History()
    with Server(url, made_key(folder, "ops", "--scope", "admin")) as server:
        async with server.asynchronous(TIMEOUT_S) as client, httpx.AsyncClient(base_url=url, timeout=60) as asking:
            streams = [
                asyncio.ensure_future(asked_on(asking, keys[tenant], model))
                for tenant, model, num in ASKED
                for _ in range(num)
            ]
            await asyncio.sleep(LOAD_S)
            history.add(await ask(server, client), window_s=0.0)
            await asyncio.sleep(LOOK_S)
            look = await ask(server, client)
            for stream in streams:
                stream.cancel()
            await asyncio.gather(*streams, return_exceptions=True)
    return Seen(url="http://127.0.0.1:8000", look=look, rates=history.add(look, window_s=0.0))


async def asked_on(client: httpx.AsyncClient, key: str, model: str) -> None:
    """One chat after the other."""
    for number in count():
        said = [{"role": "user", "content": f"{key[-6:]}, question {number}: {TEXT}"}]
        body = {"model": model, "messages": said, "stream": True, "max_tokens": 120}
        headers = {"Authorization": f"Bearer {key}"}
        async with client.stream("POST", "/v1/chat/completions", json=body, headers=headers) as response:
            async for _ in response.aiter_bytes():
                pass
        await asyncio.sleep(0.05)


def made_key(folder: Path, tenant: str, *more: str) -> str:
    """A new API key of a tenant."""
    command = [sys.executable, "-m", "axon", "keys", "create", "--tenant", tenant, "--json", *more]
    environment = {**os.environ, "AXON_DATA_DIR": str(folder / "data")}
    made = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return str(json.loads(made.stdout)["key"])


if __name__ == "__main__":
    main()
