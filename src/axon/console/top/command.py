"""``axon top``: what runs on a server, live in a terminal, or once as text or JSON."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from axon.console.flags import ApiKey, ConfigFile, DataDir, Json, Url, load
from axon.console.top.view import FASTEST_S, SLOWEST_S, Sort, View

if TYPE_CHECKING:
    from axon.console.server.server import Server
    from axon.console.top.frame import Seen

_UNLIMITED = 10_000


def top(
    url: Url = None,
    key: ApiKey = None,
    interval: Annotated[
        float, typer.Option("--interval", min=FASTEST_S, max=SLOWEST_S, help="Seconds between two looks.")
    ] = 2.0,
    model: Annotated[str, typer.Option("--model", help="Only models whose names contain this.")] = "",
    tenant: Annotated[str, typer.Option("--tenant", help="Only tenants whose ids contain this.")] = "",
    text: Annotated[str, typer.Option("--filter", help="Only rows that contain this text.")] = "",
    sort: Annotated[Sort, typer.Option("--sort", help="What rows are ordered by.")] = Sort.BUSY,
    once: Annotated[bool, typer.Option("--once", help="Print one picture as text, and end.")] = False,
    as_json: Json = False,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
) -> None:
    """Show what runs on a server: models, tenants, workers and queues, as it changes.

    It needs a key with the scope admin. Press ? for the keys, q to leave. Without a terminal it prints one picture.

    \b
    Examples:
      axon top
      axon top --url http://gpu-box:8000 --key axk_... --model llama
      axon top --once
      axon top --json
    """
    settings = load({"data_dir": data_dir}, config_file).settings
    from axon.console.server.server import Server

    view = View(text=text, model=model, tenant=tenant, sort=sort, interval_s=interval)
    with Server.find(settings, url=url, key=key) as server:
        if once or as_json:
            _print_once(server, view, as_json=as_json)
        else:
            _show(server, view)


def _show(server: "Server", view: View) -> None:
    from rich.console import Console

    from axon.console.top.screen import Screen
    from axon.runtime.clock import SystemClock

    console = Console(highlight=False, emoji=False, markup=False)
    if not console.is_terminal or console.is_dumb_terminal:
        _print_once(server, view, as_json=False)
        return
    keyboard = sys.stdin.fileno() if sys.stdin.isatty() else None
    asyncio.run(Screen(server, view, console, SystemClock(), keyboard).run())


def _print_once(server: "Server", view: View, *, as_json: bool) -> None:
    from axon.console.top.frame import picture
    from axon.runtime.clock import SystemClock

    seen = asyncio.run(_looked_twice(server, view.interval_s))
    if as_json:
        import msgspec

        whole = {"object": "top", "url": seen.url, "overview": seen.look, "rates": seen.rates}
        print(msgspec.json.format(msgspec.json.encode(whole)).decode())
        return
    for line in picture(seen, view, now=SystemClock().now(), width=_UNLIMITED)[:-1]:  # the last one tells of keys
        print(line.text)


async def _looked_twice(server: "Server", interval_s: float) -> "Seen":
    """Two looks, because rates need them."""
    from axon.console.top.asking import TIMEOUT_S, History, ask
    from axon.console.top.frame import Seen

    history = History()
    async with server.asynchronous(TIMEOUT_S) as client:
        history.add(await ask(server, client), window_s=0.0)
        await asyncio.sleep(interval_s)
        look = await ask(server, client)
    return Seen(url=server.url, look=look, rates=history.add(look, window_s=0.0))
