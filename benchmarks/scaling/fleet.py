"""A fleet of alike replicas in virtual time: arrivals in, first tokens and ends out. Decides nothing about its size.

The replicas share the work evenly, as workers that take jobs from common lanes do: every replica has the mean batch.
So one clock counts the tokens that each decoding sequence has got, another the prompt tokens of each replica that
computes a prompt; a sequence's end is a reading of its clock, kept in a heap. Between two events all rates are
constant. No tick, no randomness.
"""

from collections import Counter, deque
from functools import cache
from heapq import heapify, heappop, heappush

from axon.admission.shedding import Forecast, bounds
from axon.domain.fairness.virtual_counters import VirtualCounters
from axon.worker.queue.order import Party, Waiting, in_order
from benchmarks.scaling.engine_model import EngineModel
from benchmarks.scaling.load import Cohort, Lengths
from benchmarks.scaling.tally import Tally

_DONE = 1e-9
_PATIENCE_S = 30.0
"""The objective of the default tier: admission refuses what would wait longer."""
_BACKLOG_S = 300.0
_JOBS = 1 << 40
_GOLDEN = 0.6180339887498949
_PLASTIC = (0.7548776662466927, 0.5698402909980532)


@cache
def _waiting(tenant: str) -> Waiting:
    """The lane of a tenant, as the fair order takes it."""
    return Waiting(lane=tenant, parties={tenant: Party()})


class Fleet:
    """The state of one group's replicas and of everything that they have to do."""

    def __init__(
        self,
        engine: EngineModel,
        replicas: int,
        tally: Tally,
        *,
        pause_s: float = 0.0,
        lengths: Lengths | None = None,
    ) -> None:
        self.engine, self.replicas, self.tally = engine, replicas, tally
        self.pause_s, self.lengths = pause_s, lengths or Lengths()
        self.now = 0.0
        self.decoding: list[tuple[float, int, Cohort]] = []
        """(reading of the decode clock at its end, number, cohort)"""
        self.prefilling: list[tuple[float, int, Cohort]] = []
        self.taken: deque[Cohort] = deque()
        """They have a slot, and their prompts wait for a replica that computes no other prompt."""
        self.lanes: dict[str, deque[Cohort]] = {}
        self.waiting_by: Counter[str] = Counter()
        """Jobs in the lanes by tenant."""
        self.coming: list[Cohort] = []
        """Later turns of loops, a heap."""
        self.num_decoding = self.num_prefilling = self.num_taken = self.num_waiting = 0
        self.waiting_prompt = self.waiting_answer = 0.0
        self.busy_at = 0.0
        """When a job last came or ended."""
        self._decode_clock = self._prefill_clock = 0.0
        self._number = 0
        self._served = VirtualCounters()

    def copy(self, tally: Tally) -> "Fleet":
        """A fleet in the same state, which goes on by itself."""
        other = Fleet(self.engine, self.replicas, tally)
        for name, value in self.__dict__.items():
            if name in ("decoding", "prefilling", "taken", "coming", "waiting_by"):
                setattr(other, name, value.copy())
            elif name == "lanes":
                other.lanes = {tenant: lane.copy() for tenant, lane in value.items()}
            elif name == "_served":
                other._served.replace(dict(value._counters), level=value.level)
            elif name != "tally":
                setattr(other, name, value)
        return other

    @property
    def num_running(self) -> int:
        """Sequences that hold a slot."""
        return self.num_decoding + self.num_prefilling + self.num_taken

    @property
    def idle_s(self) -> float:
        """Seconds since the last job ended; 0 while one waits or runs, as control counts it."""
        return 0.0 if self.num_waiting or self.num_running else self.now - self.busy_at

    @property
    def step_s(self) -> float:
        """Seconds between two tokens of a sequence."""
        return 1 / self._rates()[0]

    def run(self, until: float, arrivals: list[Cohort], index: int) -> int:
        """Runs until a time; takes the arrivals from ``index`` on, and returns the index of the next one."""
        num_arrivals, coming = len(arrivals), self.coming
        while True:
            decode_rate, prefill_rate = self._rates()
            at, kind = until, 0
            if index < num_arrivals and arrivals[index].at < at:
                at, kind = arrivals[index].at, 1
            if coming and coming[0].at < at:
                at, kind = coming[0].at, 2
            if self.decoding and self.replicas:
                end = self.now + (self.decoding[0][0] - self._decode_clock) / decode_rate
                if end < at:
                    at, kind = end, 3
            if self.prefilling and self.replicas:
                end = self.now + (self.prefilling[0][0] - self._prefill_clock) / prefill_rate
                if end < at:
                    at, kind = end, 4
            at = max(at, self.now)
            if self.replicas:
                self._decode_clock += decode_rate * (at - self.now)
                self._prefill_clock += prefill_rate * (at - self.now)
            self.now = at
            if kind == 0:
                return index
            if kind == 1:
                self._arrive(arrivals[index])
                index += 1
            elif kind == 2:
                self._arrive(heappop(coming))
            elif kind == 3:
                self._end(heappop(self.decoding)[2])
            else:
                self._first_token(heappop(self.prefilling)[2])

    def resize(self, replicas: int) -> None:
        """Sets the replicas that serve. Those that go hand their sequences over: others compute prompt and answer so
        far again as one prompt, and the answer goes on."""
        if replicas < self.replicas:
            self._hand_over(self.replicas - replicas)
        self.replicas = replicas
        self._fill()

    def _rates(self) -> tuple[float, float]:
        """Tokens per second of each decoding sequence, and prompt tokens per second of each replica with a prompt."""
        engine, replicas = self.engine, self.replicas or 1
        plain_s = engine.fixed_s + engine.stream_s * self.num_decoding / replicas
        mixed_s = plain_s + engine.prompt_s * engine.chunk
        share = self.num_prefilling / replicas
        if share > 1.0:
            return 1 / mixed_s, engine.chunk / mixed_s / share
        return share / mixed_s + (1 - share) / plain_s, engine.chunk / mixed_s

    def _arrive(self, cohort: Cohort) -> None:
        self.busy_at = self.now
        self.tally.arrived(cohort)
        if self.num_waiting and self._is_refused(cohort):
            self.tally.refused(cohort)
            return
        if self.num_waiting or self.num_running >= self.replicas * self.engine.slots:
            self._wait(cohort)
        else:
            self._take(cohort)
        self._fill()

    def _is_refused(self, cohort: Cohort) -> bool:
        """Admission's own rule: by the tokens ahead and the fair share of the tenant."""
        if not self.replicas:
            return False
        tokens_per_s = self.replicas * self.tally.busy_tokens_per_s
        forecast = Forecast(
            tokens_per_s=tokens_per_s,
            own_waiting=self.waiting_by[cohort.tenant],
            share=1 / max(1, len(self.lanes)),
            mean_work=(self.waiting_prompt + self.waiting_answer) / max(1, self.num_waiting),
        )
        held = bounds(forecast, patience_s=_PATIENCE_S, backlog_s=_BACKLOG_S, jobs=_JOBS)
        waiting = self.waiting_prompt + self.waiting_answer
        return waiting > held.work or 0 < held.waiting_work < waiting

    def _wait(self, cohort: Cohort) -> None:
        lane = self.lanes.get(cohort.tenant)
        if lane is None:
            lane = self.lanes[cohort.tenant] = deque()
            self._served.lift(cohort.tenant)
        lane.append(cohort)
        self.num_waiting += cohort.weight
        self.waiting_by[cohort.tenant] += cohort.weight
        self.waiting_prompt += cohort.weight * cohort.prompt
        self.waiting_answer += cohort.weight * cohort.answer

    def _fill(self) -> None:
        """Free slots take jobs from the lanes, in the fair order; free replicas take prompts. A cohort is not split:
        the last one taken may be larger than the room, and then shares it."""
        free = self.replicas * self.engine.slots - self.num_running
        while free > 0 and self.num_waiting:
            lane = self._next_lane()
            cohort = self.lanes[lane].popleft()
            if not self.lanes[lane]:
                del self.lanes[lane]
            free -= cohort.weight
            self.num_waiting -= cohort.weight
            self.waiting_by[lane] -= cohort.weight
            self.waiting_prompt -= cohort.weight * cohort.prompt
            self.waiting_answer -= cohort.weight * cohort.answer
            self._take(cohort)
        if not self.num_waiting:
            self.waiting_prompt = self.waiting_answer = 0.0
        while self.taken and self.num_prefilling < self.replicas:
            cohort = self.taken.popleft()
            self.num_taken -= cohort.weight
            self.num_prefilling += cohort.weight
            self._number += 1
            heappush(self.prefilling, (self._prefill_clock + cohort.prompt, self._number, cohort))

    def _take(self, cohort: Cohort) -> None:
        """It gets a slot, and its tenant is charged."""
        self._served.charge(cohort.tenant, cohort.weight * (cohort.prompt + 2 * cohort.answer))
        self.tally.took(cohort)
        self.taken.append(cohort)
        self.num_taken += cohort.weight

    def _next_lane(self) -> str:
        if len(self.lanes) == 1:
            return next(iter(self.lanes))
        self._served.raise_level(self.lanes)
        return in_order(map(_waiting, self.lanes), self._served.of, self._served.level)[0].lane

    def _first_token(self, cohort: Cohort) -> None:
        self.num_prefilling -= cohort.weight
        if cohort.at >= 0:
            self.tally.first_token(cohort, self.now - cohort.at)
        self.num_decoding += cohort.weight
        self._number += 1
        heappush(self.decoding, (self._decode_clock + cohort.answer, self._number, cohort))
        self._fill()

    def _end(self, cohort: Cohort) -> None:
        self.busy_at = self.now
        self.num_decoding -= cohort.weight
        self.tally.ended(cohort, self.replicas)
        if cohort.turns > 0:
            self._number += 1
            heappush(self.coming, self._next_turn(cohort, self._number))
        self._fill()

    def _next_turn(self, cohort: Cohort, number: int) -> Cohort:
        """The loop's next turn, with a pause and lengths of its own: from multiples of irrational numbers (a Kronecker
        sequence), which are spread evenly and need no generator."""
        pause_s = self.pause_s * (0.5 + number * _GOLDEN % 1.0)
        first, second = (1e-6 + (1 - 2e-6) * (number * step % 1.0) for step in _PLASTIC)
        prompt, answer = self.lengths.draw(first, second)
        return Cohort(self.now + pause_s, prompt, answer, cohort.weight, cohort.tenant, cohort.turns - 1)

    def _hand_over(self, num_leaving: int) -> None:
        """Every so-many-th sequence in the order of their ends belongs to a replica that leaves."""
        share, owed = num_leaving / self.replicas, 0.0
        kept: list[tuple[float, int, Cohort]] = []
        for end, number, cohort in sorted(self.decoding):
            owed += share * cohort.weight
            moved = min(cohort.weight, int(owed + _DONE))
            if moved:
                owed -= moved
                left = max(1.0, end - self._decode_clock)
                done = max(0.0, cohort.answer - left)
                self.taken.appendleft(Cohort(-1.0, cohort.prompt + done, left, moved, cohort.tenant, cohort.turns))
                self.num_decoding -= moved
                self.num_taken += moved
            if cohort.weight > moved:
                kept.append((end, number, cohort._replace(weight=cohort.weight - moved)))
        heapify(kept)
        self.decoding = kept
