"""Runs blocking calls on files beside the event loop, in threads of their own. Knows no file.

A network disk that is away may block its threads for good. In the event loop's own executor, which has a few threads
more than there are cores, that would stop everything else that needs one.
"""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_NUM_THREADS = 32


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_NUM_THREADS, thread_name_prefix="axon-weights")


os.register_at_fork(after_in_child=_pool.cache_clear)  # its threads stay in the parent


async def aside(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """``asyncio.to_thread`` in these threads: when it is cancelled, the call goes on and is not waited for."""
    return await asyncio.get_running_loop().run_in_executor(_pool(), partial(call, *args, **kwargs))


async def in_thread(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As ``aside``, but waits for the call even when it is cancelled, so that its file can be closed then."""
    running = asyncio.ensure_future(aside(call, *args, **kwargs))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        if not running.cancelled():
            running.exception()  # seen; the cancellation goes first
        raise
