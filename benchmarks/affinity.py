"""What it is worth that a conversation's next turn goes to the worker that holds its blocks.

python -m benchmarks.affinity                 the default model, two workers on the real services; with and without
python -m benchmarks.affinity --smoke         the smallest run, without a model
python -m benchmarks.affinity --save          also keeps the JSON in benchmarks/results/

Conversations of five turns, two at a time, each by a user who answers at once: chats, which bring all their messages.
Every round asks the same questions. ``found`` is the share of follow-up turns that found at least half of the last
turn's tokens in the worker's blocks, ``cached`` the share of their prompts' tokens; then the time to the first token of
the last turn. The two ways take turns, each with a fleet of its own.
"""

import argparse
import asyncio
import json
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.fleet.member import Member, Role  # noqa: E402

from benchmarks.measures.figures import Figures, median, percentile, rounded, table  # noqa: E402
from benchmarks.measures.load import make_prompt  # noqa: E402
from benchmarks.measures.report import Report, add_report_options  # noqa: E402
from benchmarks.measures.stage import Urls, started_services  # noqa: E402

SEED = 0
NUM_CONVERSATIONS = 8
NUM_TURNS = 5
NUM_USERS = 2
NUM_WORDS = 100
NUM_TOKENS = 32
ROUNDS = 1
SMOKE: dict[str, object] = {"engine_kind": "echo", "engine_echo_step_s": 0.002}
MODEL: dict[str, object] = {"engine_threads": 1}  # a core for each worker
MODELS_DIR = ROOT / ".cache" / "models"


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn as its user saw it."""

    number: int
    first_token_s: float
    num_prompt: int
    num_cached: int
    num_before: int
    """Tokens of the turn before it, prompt and answer."""


@contextmanager
def fleet(folder: Path, urls: Urls, *, affinity: bool, engine: dict[str, object]) -> Iterator[tuple[str, str]]:
    """A gateway, two workers and a control under a name of their own; gives the gateway's URL and key."""
    with ExitStack() as stack:
        settings: dict[str, object] = {
            "queue": urls.queue,
            "live": urls.live,
            "store": urls.store,
            "namespace": f"bench-{secrets.token_hex(4)}",
            "pepper": "0123456789abcdef0123456789abcdef",
            "data_dir": folder / "data",
            "models_dir": MODELS_DIR,
            "admission_requests_per_minute": 0,
            "dispatch_affinity": affinity,
            **engine,
        }
        roles: list[tuple[Role, str]] = [
            ("worker", "worker-1"),
            ("worker", "worker-2"),
            ("control", "control"),
            ("gateway", "gateway"),
        ]
        members = [Member(role, name, folder, settings) for role, name in roles]
        for member in members:
            stack.callback(member.stop)
            member.start(wait=False)
        for member in members:
            member.wait_ready()
        yield members[-1].url, (folder / "data" / "dev-key").read_text().strip()


async def converse(http: httpx.AsyncClient, number: int, options: argparse.Namespace) -> list[Turn]:
    """One conversation, its user answering at once."""
    messages = [{"role": "system", "content": "You are a patient teacher."}]
    turns: list[Turn] = []
    num_before = 0
    for place in range(1, options.turns + 1):
        messages.append({"role": "user", "content": make_prompt(f"{SEED}/{number}/{place}", options.words)})
        body = {
            "model": options.model,
            "messages": messages,
            "max_tokens": NUM_TOKENS,
            "temperature": 0,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        text, first_token_s, usage = await ask(http, body)
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        turns.append(Turn(place, first_token_s, usage["prompt_tokens"], cached, num_before))
        num_before = usage["total_tokens"]
        messages.append({"role": "assistant", "content": text})
    return turns


async def ask(http: httpx.AsyncClient, body: dict[str, Any]) -> tuple[str, float, dict[str, Any]]:
    """The answer, the time to its first token, and what it cost."""
    started, first_token_s, text = time.perf_counter(), 0.0, ""
    usage: dict[str, Any] = {}
    async with http.stream("POST", "/v1/chat/completions", json=body) as reply:
        reply.raise_for_status()
        async for line in reply.aiter_lines():
            if not line.startswith("data: {"):
                continue
            frame = json.loads(line[6:])
            usage = frame.get("usage") or usage
            piece = "".join(choice["delta"].get("content") or "" for choice in frame["choices"])
            if piece and not text:
                first_token_s = time.perf_counter() - started
            text += piece
    return text, first_token_s, usage


async def measure(url: str, key: str, options: argparse.Namespace) -> Figures:
    """All conversations, a few at a time."""
    waiting = list(range(options.conversations))
    turns: list[Turn] = []

    async def user(http: httpx.AsyncClient) -> None:
        while waiting:
            turns.extend(await converse(http, waiting.pop(0), options))

    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=120) as http:
        await ask(http, {"model": options.model, "messages": [{"role": "user", "content": "Hello"}], "stream": True})
        async with asyncio.TaskGroup() as users:
            for _ in range(NUM_USERS):
                users.create_task(user(http))
    return figures(turns, options.turns)


def figures(turns: list[Turn], last: int) -> Figures:
    followed = [turn for turn in turns if turn.number > 1]
    waited_ms = [1000 * turn.first_token_s for turn in turns if turn.number == last]
    return {
        "follow-ups": len(followed),
        "found": sum(turn.num_cached >= turn.num_before / 2 for turn in followed) / len(followed),
        "cached": sum(turn.num_cached for turn in followed) / sum(turn.num_prompt for turn in followed),
        "prompt_tokens": sum(turn.num_prompt for turn in turns if turn.number == last) / len(waited_ms),
        f"ttft_turn_{last}_p50_ms": percentile(waited_ms, 0.5),
        f"ttft_turn_{last}_max_ms": max(waited_ms),
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversations", type=int, default=NUM_CONVERSATIONS)
    parser.add_argument("--turns", type=int, default=NUM_TURNS)
    parser.add_argument("--words", type=int, default=NUM_WORDS, help="of each question")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    add_report_options(parser)
    parser.add_argument("--smoke", action="store_true", help="the smallest run: no model")
    options = parser.parse_args()
    options.model = "echo" if options.smoke else "smollm2-135m-instruct"
    if options.smoke:
        options.conversations, options.turns, options.words, options.rounds = 2, 3, 20, 1
    return options


def main() -> None:
    options = parse()
    report = Report("affinity", options)
    engine = SMOKE if options.smoke else MODEL
    rounds: dict[str, list[Figures]] = {"with affinity": [], "without": []}
    with started_services() as services, tempfile.TemporaryDirectory(prefix="axon-affinity-") as folder:
        for _ in range(options.rounds):
            for name, measured in rounds.items():
                is_on = name == "with affinity"
                with fleet(Path(folder), services.urls, affinity=is_on, engine=engine) as (url, key):
                    measured.append(asyncio.run(measure(url, key, options)))
                print(table({name: measured[-1]}), flush=True)
    rows = {name: median(measured) for name, measured in rounds.items()}
    print(table(rows), flush=True)
    report.end(
        {
            "rows": rounded(rows),
        }
    )


if __name__ == "__main__":
    main()
