"""Shows a server on a terminal, look after look, until a key or a signal ends it. Decides nothing that it shows."""

import asyncio
import os
import signal
from contextlib import ExitStack
from dataclasses import replace

import httpx
from rich.console import Console, ConsoleDimensions, ScreenContext

from axon.console.server.server import Server
from axon.console.top.asking import TIMEOUT_S, WINDOW_S, History, ask
from axon.console.top.frame import Seen, drawn, picture
from axon.console.top.keyboard import READ_BYTES, Keys, single_keys
from axon.console.top.view import View, pressed
from axon.errors import AxonError
from axon.runtime.clock import Clock

_REDRAW_S = 1.0
"""The clock on the screen moves at least this often."""


class Screen:
    """``run`` shows the server until it is left; the terminal is then as it was before."""

    def __init__(self, server: Server, view: View, console: Console, clock: Clock, keyboard: int | None) -> None:
        """``keyboard`` is the descriptor of a terminal; None where no key can be read."""
        self._server, self._console, self._clock, self._keyboard = server, console, clock, keyboard
        self._view, self._seen = view, Seen(url=server.url)
        self._keys, self._history = Keys(), History()
        self._changed, self._hurry = asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        """Raises the error of the first look; later ones are shown, and the server is asked again."""
        async with self._server.asynchronous(TIMEOUT_S) as client:
            look = await ask(self._server, client)
            self._seen = replace(self._seen, look=look, rates=self._history.add(look, window_s=WINDOW_S))
            with ExitStack() as stack:
                self._listen(stack)
                screen = stack.enter_context(self._console.screen(hide_cursor=True))
                async with asyncio.TaskGroup() as tasks:
                    asking = tasks.create_task(self._ask_on(client))
                    try:
                        await self._show(screen)
                    finally:
                        asking.cancel()

    async def _show(self, screen: ScreenContext) -> None:
        while not self._view.has_ended:
            self._changed.clear()
            width, height = self._measure()
            lines = picture(self._seen, self._view, now=self._clock.now(), width=width, height=height)
            screen.update(drawn(lines))
            try:
                async with asyncio.timeout(_REDRAW_S):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def _measure(self) -> tuple[int, int]:
        """The terminal's columns and lines now; COLUMNS and LINES, which do not follow a window, only where it has
        none."""
        try:
            columns, lines = os.get_terminal_size(self._console.file.fileno())
        except (OSError, ValueError):
            return self._console.size
        if columns and lines:
            self._console.size = ConsoleDimensions(columns, lines)
        return self._console.size

    async def _ask_on(self, client: httpx.AsyncClient) -> None:
        while True:
            self._hurry.clear()
            try:
                async with asyncio.timeout(self._view.interval_s):
                    await self._hurry.wait()
            except TimeoutError:
                pass
            if not self._view.is_paused:
                await self._ask(client)

    async def _ask(self, client: httpx.AsyncClient) -> None:
        try:
            look = await ask(self._server, client)
        except AxonError as error:
            since = self._seen.silent_since or self._clock.now()
            self._seen = replace(self._seen, silent_since=since, problem=error.message)
        else:
            rates = self._history.add(look, window_s=max(WINDOW_S, self._view.interval_s))
            self._seen = Seen(url=self._server.url, look=look, rates=rates)
        self._changed.set()

    def _listen(self, stack: ExitStack) -> None:
        """Has keys and signals change the view, until the stack is closed."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._press, "ctrl-c")
            stack.callback(loop.remove_signal_handler, number)
        loop.add_signal_handler(signal.SIGWINCH, self._changed.set)
        stack.callback(loop.remove_signal_handler, signal.SIGWINCH)
        if self._keyboard is not None:
            stack.enter_context(single_keys(self._keyboard))
            loop.add_reader(self._keyboard, self._read, self._keyboard)
            stack.callback(loop.remove_reader, self._keyboard)

    def _read(self, keyboard: int) -> None:
        try:
            data = os.read(keyboard, READ_BYTES)
        except OSError:
            data = b""
        if not data:  # the terminal is gone
            self._press("ctrl-c")
        for key in self._keys.take(data):
            self._press(key)

    def _press(self, key: str) -> None:
        before, self._view = self._view, pressed(self._view, key)
        if self._view.interval_s != before.interval_s or (before.is_paused and not self._view.is_paused):
            self._hurry.set()
        self._changed.set()
