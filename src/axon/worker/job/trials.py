"""Finds the job that crashes engines (a poison message) by bisection. No I/O, no clock.

A crash is counted against the jobs that were in the step, and the count travels with them from worker to worker. After
one crash a job runs beside others, because most engines die of something else. From the second on it is a suspect:
suspects run in an engine with nothing else, by halves. A half whose every job has gained enough tokens is cleared, and
the culprit looked for in the other. A job is guilty when the engine crashes with it alone, before it has gained a
token, and at least the third time; that explains the crashes of all others.
"""

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

SUSPECT_CRASHES = 2
"""A job with so many crashes runs in an engine with nothing but suspects."""
_FEW = 4
"""Suspects that are tried one at a time, not by halves."""
_QUOTA = 8
"""Tokens that clear a suspect; each crash with the job alone multiplies them by as much again."""
_LONGEST_QUOTA = 512
"""Tokens that clear a suspect after any number of crashes."""


def halves(suspects: Sequence[str], mute: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The suspects, oldest first, in two parts, of which the first is to be tried first.

    ``mute`` are those that have never gained a token: most culprits are among them, because they crash at their prompt.
    The others are tried first and together. They are most likely innocent, so that most streams go on at once, and by
    the next crash a spare engine is ready. Then the newest is most likely guilty: the engine ran well until it came. Of
    many suspects the older half is tried first, since to clear it costs some tokens' time and a crash the start of an
    engine; of a few mute ones, the newest alone.
    """
    others = tuple(job_id for job_id in suspects if job_id not in mute)
    if 0 < len(others) < len(suspects):
        return others, tuple(job_id for job_id in suspects if job_id in mute)
    if len(suspects) > _FEW:
        half = len(suspects) // 2
        return tuple(suspects[:half]), tuple(suspects[half:])
    if others:
        return tuple(suspects[:1]), tuple(suspects[1:])
    return tuple(suspects[-1:]), tuple(suspects[:-1])


@dataclass(slots=True)
class _Record:
    crashes: int = 0
    """Engines that died with the job in the step, here and elsewhere."""
    num_alone: int = 0
    """Those of them in which it was alone, here."""
    is_mute: bool = True
    """It has never gained a token."""
    has_quota: bool = False
    """It has gained enough tokens since it entered the engine."""

    @property
    def quota(self) -> int:
        return min(int(_QUOTA ** (1 + self.num_alone)), _LONGEST_QUOTA)


@dataclass(slots=True, eq=False)
class _Group:
    """Suspects that are tried together."""

    job_ids: tuple[str, ...]
    has_culprit: bool = False
    """The other part of a group that crashed was cleared, so that the culprit is in this one: it is not tried whole."""


class Trials:
    """The jobs in hand with their crashes, and the groups of suspects in the order in which they are tried."""

    def __init__(self, *, strike_limit: int) -> None:
        self._strike_limit = strike_limit
        self._records: dict[str, _Record] = {}
        self._groups: deque[_Group] = deque()

    @property
    def on_trial(self) -> tuple[str, ...]:
        """The jobs that have the engine for themselves; none when all jobs may run."""
        return self._groups[0].job_ids if self._groups else ()

    def may_run(self, job_id: str) -> bool:
        """Whether the job may be in the engine now."""
        return not self._groups or job_id in self._groups[0].job_ids

    def is_suspect(self, job_id: str) -> bool:
        """Whether the job is on trial or waits for its trial."""
        return any(job_id in group.job_ids for group in self._groups)

    def crashes(self, job_id: str) -> int:
        """The job's crash count, which travels with it."""
        record = self._records.get(job_id)
        return record.crashes if record else 0

    def took(self, job_id: str, *, crashes: int, is_mute: bool) -> bool:
        """A job was claimed with this crash count; True when that begins or prolongs a trial."""
        if job_id in self._records:
            return False  # another attempt of this worker
        if crashes:
            self._records[job_id] = _Record(crashes=crashes, is_mute=is_mute)
        if crashes < SUSPECT_CRASHES:
            return False
        if len(self._groups) > 1 and not self._groups[-1].has_culprit:
            self._groups[-1].job_ids += (job_id,)
        else:
            self._groups.append(_Group((job_id,)))
        return True

    def crashed(self, gained: Mapping[str, int], *, mute: Collection[str] = ()) -> list[str]:
        """The engine died in a step of these jobs; takes the tokens that each had gained since it entered, and which of
        them have never gained one. Returns the guilty jobs."""
        for job_id, tokens in gained.items():
            record = self._records.setdefault(job_id, _Record(is_mute=job_id in mute))
            record.crashes += 1
            record.is_mute = record.is_mute and not tokens
            record.num_alone += len(gained) == 1
        if len(gained) == 1:
            [(job_id, tokens)] = gained.items()
            if not tokens and self._records[job_id].crashes >= self._strike_limit:
                self.gone(job_id)
                self._acquit_all()
                return [job_id]
        self._suspect([job_id for job_id in gained if self._records[job_id].crashes >= SUSPECT_CRASHES])
        return []

    def gained(self, job_id: str, tokens: int) -> bool:
        """The job has gained this many tokens since it entered the engine; True when that clears the group on trial."""
        if (record := self._records.get(job_id)) is None:
            return False
        record.is_mute = False
        if not self._groups or job_id not in self._groups[0].job_ids:
            return False
        record.has_quota = record.has_quota or tokens >= record.quota
        if not all(self._records[each].has_quota for each in self._groups[0].job_ids):
            return False
        self._clear()
        return True

    def gone(self, job_id: str) -> bool:
        """The job has ended, or left this worker; True when others may enter the engine for that."""
        self._records.pop(job_id, None)
        if not self.is_suspect(job_id):
            return False
        self._remove(job_id)
        if self._groups and all(self._records[each].has_quota for each in self._groups[0].job_ids):
            self._clear()
        return True

    def postpone(self, job_id: str) -> bool:
        """The job cannot enter the engine for a while. If it is a suspect, its trial is taken off the list until
        ``try_now``, so that nobody waits for it meanwhile. Returns whether others may enter the engine because of
        that."""
        record = self._records.get(job_id)
        found = self.gone(job_id)
        if record is not None:
            self._records[job_id] = record
        return found

    def try_now(self, job_id: str) -> None:
        """A job that was postponed may enter the engine: if it is a suspect, its trial comes last on the list."""
        record = self._records.get(job_id)
        if record is not None and record.crashes >= SUSPECT_CRASHES:
            self._groups.append(_Group((job_id,)))

    def _remove(self, job_id: str) -> None:
        for group in self._groups:
            group.job_ids = tuple(each for each in group.job_ids if each != job_id)
        self._groups = deque(group for group in self._groups if group.job_ids)

    def _suspect(self, job_ids: list[str]) -> None:
        """The culprit is among these jobs: they are tried next, by halves."""
        if any(each in self.on_trial for each in job_ids) and len(self._groups) > 1 and self._groups[1].has_culprit:
            self._release(self._groups[1])  # it was in the first half, not in the second
        for each in job_ids:
            self._records[each].has_quota = False
            self._remove(each)
        self._try_halves(job_ids)

    def _try_halves(self, job_ids: Sequence[str]) -> None:
        """The culprit is among these jobs: tries one part, and the other after it."""
        if not job_ids:
            return
        if len(job_ids) == 1:
            self._groups.appendleft(_Group(tuple(job_ids)))
            return
        first, second = halves(job_ids, {each for each in job_ids if self._records[each].is_mute})
        self._groups.appendleft(_Group(second, has_culprit=True))
        self._groups.appendleft(_Group(first))

    def _clear(self) -> None:
        """The group on trial is cleared; where the culprit must be in the next one, that is tried by halves."""
        self._release(self._groups[0])
        if self._groups and self._groups[0].has_culprit:
            self._try_halves(self._groups.popleft().job_ids)

    def _release(self, group: _Group) -> None:
        """The jobs of the group run beside others again."""
        self._groups.remove(group)
        for job_id in group.job_ids:
            record = self._records[job_id]
            record.crashes, record.has_quota = SUSPECT_CRASHES - 1, False

    def _acquit_all(self) -> None:
        """The culprit is found: nobody else is a suspect any more."""
        self._groups.clear()
        for record in self._records.values():
            record.crashes, record.has_quota = min(record.crashes, SUSPECT_CRASHES - 1), False
