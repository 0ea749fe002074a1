"""What a batch costs the people who wait: times to the first token beside one and without, and how fast it gets on.

python -m benchmarks.batches                 everything: a table, and one JSON line last
python -m benchmarks.batches --place model   the default model on one server, or `fleet`: echoing engines on services
python -m benchmarks.batches --save          also keeps the JSON in benchmarks/results/
python -m benchmarks.batches --smoke         the smallest run: no model, a second for each part

Half as many users as there are slots ask again as soon as they are answered. Rounds without a batch and beside one take
turns, and the samples of all rounds are taken together. The batch is another tenant's, has more lines than it can
answer meanwhile, and is cancelled at the end of its round. The aim is a p99 of at most 1.3 times.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import httpx

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.fleet.fleet import shared_fleet  # noqa: E402
from tests.journeys.server import running, wait_until  # noqa: E402

from axon.domain.tenants.tenant import Limits  # noqa: E402
from benchmarks.measures.crowd import Crowd, Party, run_crowd  # noqa: E402
from benchmarks.measures.figures import Figures, percentile, rounded, table  # noqa: E402
from benchmarks.measures.load import make_prompt  # noqa: E402
from benchmarks.measures.report import Report, add_report_options  # noqa: E402
from benchmarks.measures.tenancy import Keys, make_tenants  # noqa: E402

SLOTS = 8
STEP_S = 0.02
PEOPLE, BATCHER = "people", "batcher"
FREE = Limits(requests_per_minute=0.0, concurrent=10_000, queued=0)
NUM_LINES = 5000
AIM = 1.3

Rows = dict[str, Figures]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A server that is up, with both tenants."""

    url: str
    model: str
    keys: Keys
    num_slots: int
    seconds: float
    settle_s: float

    def crowd(self) -> Crowd:
        """The people who wait, for a while."""
        port = urlsplit(self.url).port
        assert port
        people = Party(
            tenant=PEOPLE, keys=self.keys[PEOPLE], num_streams=self.num_slots // 2, num_tokens=24, num_words=24
        )
        crowd = run_crowd(
            port,
            self.model,
            [people],
            seconds=self.seconds,
            settle_s=self.settle_s,
            ramp_s=min(1.0, self.settle_s),
        )
        return asyncio.run(crowd)

    @contextmanager
    def batch(self) -> Iterator["Batch"]:
        """A batch that runs and does not end before it is cancelled."""
        headers = {"Authorization": f"Bearer {self.keys[BATCHER][0]}"}
        with httpx.Client(base_url=self.url, headers=headers, timeout=60) as http:
            form = {"purpose": (None, b"batch"), "file": ("lines.jsonl", self._lines())}
            file_id = http.post("/v1/files", files=form).raise_for_status().json()["id"]
            ask = {"input_file_id": file_id, "endpoint": "/v1/completions", "completion_window": "24h"}
            batch = Batch(http, http.post("/v1/batches", json=ask).raise_for_status().json()["id"])
            wait_until(lambda: batch.num_done() > self.num_slots, "the batch has begun", 120)
            try:
                yield batch
            finally:
                http.post(f"/v1/batches/{batch.id}/cancel").raise_for_status()
                wait_until(lambda: batch.status() == "cancelled", "the batch has ended", 120)

    def _lines(self) -> bytes:
        lines = []
        for number in range(NUM_LINES):
            body = {"model": self.model, "prompt": make_prompt(f"line/{number}", 24), "max_tokens": 24}
            more = {"temperature": 0, "ignore_eos": True}
            line = {"custom_id": str(number), "method": "POST", "url": "/v1/completions", "body": body | more}
            lines.append(json.dumps(line).encode())
        return b"\n".join(lines)


class Batch:
    """One that was made."""

    def __init__(self, http: httpx.Client, batch_id: str) -> None:
        self._http, self.id = http, batch_id

    def status(self) -> str:
        return str(self._body()["status"])

    def num_done(self) -> int:
        counts = self._body()["request_counts"]
        assert isinstance(counts, dict)
        return int(counts["completed"])

    def _body(self) -> dict[str, object]:
        found: dict[str, object] = self._http.get(f"/v1/batches/{self.id}").raise_for_status().json()
        return found


def measured(site: Site, rounds: int) -> Rows:
    """Rounds without and beside take turns."""
    alone: list[Crowd] = []
    beside: list[Crowd] = []
    num_lines, batch_s = 0, 0.0
    site.crowd()  # the first steps are slow
    for _ in range(rounds):
        alone.append(site.crowd())
        with site.batch() as batch:
            before, began = batch.num_done(), time.perf_counter()
            beside.append(site.crowd())
            num_lines += batch.num_done() - before
            batch_s += time.perf_counter() - began
    without, with_it = together(alone), together(beside)
    ratios = {
        name: with_it[name] / without[name] if without[name] else 0.0
        for name in ("ttft_p50_ms", "ttft_p99_ms", "itl_p50_ms", "itl_p99_ms")
    }
    return {
        "without": without,
        "beside": {**with_it, "lines_per_s": num_lines / batch_s},
        "ratios": {name.removesuffix("_ms"): value for name, value in ratios.items()},
    }


def together(crowds: Sequence[Crowd]) -> Figures:
    """The samples of several rounds taken together."""
    firsts: list[float] = []
    gaps: list[float] = []
    num_tokens, seconds = 0, 0.0
    for crowd in crowds:
        num_tokens += crowd.num_tokens()
        seconds += crowd.end - crowd.start
        for each in crowd.heard[PEOPLE]:
            moments = [moment for moment, _ in each.tokens()]
            if each.status == 200 and moments and crowd.start <= each.started < crowd.end:
                firsts.append(moments[0] - each.started)
                gaps += [after - before for before, after in pairwise(moments)]
    figures = {"num": float(len(firsts)), "tokens_per_s": num_tokens / seconds}
    for name, values in (("ttft", firsts), ("itl", gaps)):
        for share in (0.5, 0.99):
            figures[f"{name}_p{100 * share:.0f}_ms"] = 1000 * percentile(values, share)
    return figures


@contextmanager
def server(options: argparse.Namespace, folder: Path) -> Iterator[Site]:
    """One server with the default model, or with an engine that echoes."""
    echo: dict[str, object] = {"engine_kind": "echo", "engine_echo_step_s": 0.005} if options.smoke else {}
    with running(folder, engine_max_sequences=SLOTS, batches_poll_s=0.1, **echo) as up:
        keys = make_tenants(dict.fromkeys((PEOPLE, BATCHER), FREE), data_dir=folder)
        model = "echo" if options.smoke else "smollm2-135m-instruct"
        settle_s = 0.5 if options.smoke else 3.0
        yield Site(url=up.url, model=model, keys=keys, num_slots=SLOTS, seconds=options.seconds, settle_s=settle_s)


@contextmanager
def fleet(options: argparse.Namespace, folder: Path) -> Iterator[Site]:
    """A gateway, two workers and a control on real services; nginx is left out."""
    folder.mkdir()
    folder.chmod(0o755)
    settings = {"engine_echo_step_s": STEP_S, "engine_max_sequences": SLOTS, "batches_poll_s": 0.1}
    with ExitStack() as stack:
        up = shared_fleet(folder, stack, **settings).start(gateways=1, workers=2, controls=1)
        keys = make_tenants(dict.fromkeys((PEOPLE, BATCHER), FREE), data_dir=up.data_dir, store=str(up.store))
        yield Site(
            url=up.gateways[0].url,
            model="echo",
            keys=keys,
            num_slots=2 * SLOTS,
            seconds=options.seconds,
            settle_s=3.0,
        )


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--place", choices=("fleet", "model", "both"), default="both")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each part of a round")
    parser.add_argument("--rounds", type=int, default=3)
    add_report_options(parser)
    parser.add_argument("--smoke", action="store_true", help="the smallest run: no model, no services")
    options = parser.parse_args(arguments)
    if options.smoke:
        options.seconds, options.rounds, options.place = 1.0, 1, "model"
    return options


def main() -> None:
    options = parse()
    report = Report("batches", options)
    places: dict[str, Rows] = {}
    with tempfile.TemporaryDirectory(prefix="axon-batches-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for name, place in (("fleet", fleet), ("model", server)):
            if options.place in (name, "both"):
                with place(options, folder / name) as site:
                    places[name] = measured(site, options.rounds)
                print(table({f"{name}: {row}": figures for row, figures in places[name].items()}), flush=True)
    report.end(
        {
            "ttft_p99_ratio": round(max(rows["ratios"]["ttft_p99"] for rows in places.values()), 3),
            "aim": AIM,
            "places": {place: rounded(rows) for place, rows in places.items()},
        }
    )


if __name__ == "__main__":
    main()
