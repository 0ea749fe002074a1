"""The process of a following rank: ``python -m axon.engine.ranks.rank --join tcp://HOST:PORT``.

It joins its group, loads its part of the model, and computes its part of every step that it is sent. It ends with its
leading rank, and with the process that started it if that one gave it a pipe to watch.
"""

import argparse
import os
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from axon.engine.batch import Batch
from axon.engine.protocol.codec import Failed
from axon.engine.ranks.address import connect, parse
from axon.engine.ranks.link import Link, Lost, end_process
from axon.engine.ranks.plan import PlanReader, copies_of
from axon.engine.ranks.protocol import VERSION, Begin, Go, Join, Loaded, Moves, Plan

if TYPE_CHECKING:
    from axon.engine.parallel.group import Store

_SETTLE_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Command-line arguments of a rank."""

    join: str
    rank: int
    gpu: int
    model_dir: str
    patience_s: float


def run(options: Options) -> int:
    """Runs a rank until its group ends; returns the exit code."""
    try:
        sock = connect(options.join, patience_s=options.patience_s)
    except OSError as error:
        print(f"axon: no leading rank at {options.join}: {error}", file=sys.stderr)
        return 1
    link = Link(sock, name="the leading rank")
    link.watch()
    link.say(Join(version=VERSION, rank=options.rank))
    try:
        begin: object = link.hear(Begin, Failed)
        if not isinstance(begin, Begin):
            raise Lost(str(begin))
        link.beat_for(begin.config.rank_timeout_s)
        link.end_with_peer(_leave)
        return _work(link, begin, options)
    except Lost as error:
        print(f"axon: {error}", file=sys.stderr)
        return 1


def _work(link: Link, begin: Begin, options: Options) -> int:
    def meet() -> "Store":
        from axon.engine.parallel.group import find_store

        link.say(Loaded())
        go = link.hear(Go)
        return find_store(parse(options.join)[0], go.store_port)

    try:
        from axon.engine.ranks.follower import open_follower

        follow = open_follower(begin, meet, gpu=options.gpu, model_dir=Path(options.model_dir or begin.model_dir))
    except Exception as error:
        traceback.print_exc()
        link.end_with_peer(lambda _: os._exit(1))
        link.say(Failed(f"{type(error).__name__}: {error}"))
        time.sleep(_SETTLE_S)  # so that the message arrives before the connection ends
        return 1
    link.be_strict(begin.config.rank_timeout_s)
    plans = PlanReader()
    while True:
        word: object = link.hear(Plan, Moves)
        batch = plans.read(word) if isinstance(word, Plan) else Batch((), copies_of(_moves(word)))
        try:
            follow(batch)
        except Exception:
            time.sleep(_SETTLE_S)  # if the leading rank is lost, the link ends this process meanwhile
            raise


def _moves(word: object) -> Moves:
    assert isinstance(word, Moves), "only what was asked for is heard"
    return word


def _leave(reason: str) -> None:
    """Ends this process with its group."""
    sys.stdout.flush()
    os._exit(0)


def watch_parent(descriptor: int) -> None:
    """Ends this process when the other end of the pipe is closed."""

    def wait() -> None:
        while os.read(descriptor, 1):
            pass
        end_process("the process that started it has ended")

    threading.Thread(target=wait, name="axon-parent", daemon=True).start()


def main() -> int:
    parser = argparse.ArgumentParser(prog="axon.engine.ranks.rank")
    parser.add_argument("--join", required=True, help="the leading rank's rendezvous, tcp://HOST:PORT")
    parser.add_argument("--rank", type=int, default=0, help="which rank to be; 0 takes any")
    parser.add_argument("--gpu", type=int, default=0, help="which of this host's GPUs to use")
    parser.add_argument("--model-dir", default="", help="where this host has the model, if elsewhere")
    parser.add_argument("--patience-s", type=float, default=0.0, help="how long the leading rank may take to come up")
    parser.add_argument("--parent-fd", type=int, default=-1, help="a pipe that its starter holds open")
    chosen = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-c belongs to the leading rank
    if chosen.parent_fd >= 0:
        watch_parent(chosen.parent_fd)
    options = Options(
        join=chosen.join,
        rank=chosen.rank,
        gpu=chosen.gpu,
        model_dir=chosen.model_dir,
        patience_s=chosen.patience_s,
    )
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
