"""The versions of a simulated deployment: rollouts, a version that fails, one that drains; and who sees it when."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from axon.domain.registry.deployment import Deployment, Member, MemberState
from axon.domain.registry.rollout import WHOLE, Rollout, RolloutState
from axon.domain.registry.snapshot import first_version
from axon.domain.session.pin import Known, known_of

LETTERS = {"sim@v1": "", "sim@v2": "b", "sim@v3": "c", "sim@v4": "d"}
"""Letters of the versions; the last one is cold: it has no worker until everything else is over."""
V1, V2, V3, COLD = LETTERS
FRESH_S, MAX_LAG_S = 1.0, 1.1
_SHARES = (0, WHOLE // 2, WHOLE)


def number_of(version: str) -> int:
    """Makes the tokens of versions different; the one version of a world without rollouts has 0."""
    return list(LETTERS).index(version) if version in LETTERS else 0


@dataclass(frozen=True, slots=True)
class View:
    """The deployment as a gateway sees it."""

    deployment: Deployment
    is_fresh: bool

    def choose(self, key: str) -> str:
        return first_version(self.deployment, key, is_fresh=self.is_fresh)

    @property
    def known(self) -> Known:
        return known_of(self.deployment, {}, is_fresh=self.is_fresh)


class Plan:
    """What happens to the deployment, and when each gateway gets to know it."""

    def __init__(self, seed: int, now: Callable[[], float]) -> None:
        self._rng = random.Random(f"rollout {seed}")  # apart, so that nothing else of a schedule depends on it
        self._now = now
        self.is_cold = self._rng.random() < 0.4
        """Whether some turns ask for the version without a worker."""
        members = tuple(
            Member(version=version, letter=letter, state=MemberState.READY) for version, letter in LETTERS.items()
        )
        first = Deployment(name="sim", model="sim", members=members, stable=V1, created=0.0)
        self._seen = [(0.0, replace(first, rollout=self._rollout("r1", V1, V2)))]
        self._lags: dict[str, tuple[float, float]] = {}
        self.failed_at: dict[str, float] = {}
        """Since when no session may begin a turn on a version."""

    def events(self) -> list[tuple[float, Callable[[], None]]]:
        """Changes of the deployment, with their times."""
        story = self._rng.choice([self._failing, self._promoting, self._taking_back])
        times = sorted(self._rng.uniform(0.2, 2.5) for _ in range(4))
        return list(zip(times, story(), strict=True))

    def view(self, gateway: str) -> View:
        """What a gateway sees now; it lags behind by a time that changes now and then."""
        until, lag_s = self._lags.get(gateway, (-1.0, 0.0))
        if until < self._now():
            lag_s = self._rng.choice([0.0, MAX_LAG_S])
            self._lags[gateway] = self._now() + 1.0, lag_s
        return View(self._at(self._now() - lag_s), lag_s < FRESH_S)

    def _at(self, time: float) -> Deployment:
        return next((seen for since, seen in reversed(self._seen) if since <= time), self._seen[0][1])

    def _change(self, deployment: Deployment) -> None:
        self._seen.append((self._now(), deployment))

    @property
    def _last(self) -> Deployment:
        return self._seen[-1][1]

    def _rollout(self, rollout_id: str, old: str, new: str) -> Rollout:
        share = self._rng.choice(_SHARES)
        return Rollout(id=rollout_id, old=old, new=new, steps=(share,), state=RolloutState.RUNNING, began=0.0)

    def _step(self) -> None:
        rollout = self._last.rollout
        assert rollout is not None
        self._change(replace(self._last, rollout=replace(rollout, steps=(self._rng.choice(_SHARES),))))

    def _state(self, version: str, state: MemberState) -> None:
        members = tuple(
            replace(member, state=state) if member.version == version else member for member in self._last.members
        )
        if state in (MemberState.FAILED, MemberState.CLOSED):
            self.failed_at[version] = self._now()
        self._change(replace(self._last, members=members))

    def _again(self) -> None:
        """Another rollout, to the third version."""
        self._change(replace(self._last, rollout=self._rollout("r2", self._last.stable, V3)))

    def _promote(self) -> None:
        self._change(replace(self._last, stable=V2, rollout=None))
        self._state(V1, MemberState.DRAINING)

    def _failing(self) -> list[Callable[[], None]]:
        return [self._step, lambda: self._state(V2, MemberState.FAILED), self._again, self._step]

    def _promoting(self) -> list[Callable[[], None]]:
        return [self._step, self._promote, lambda: self._state(V1, MemberState.CLOSED), self._again]

    def _taking_back(self) -> list[Callable[[], None]]:
        return [self._step, self._step, self._again, self._step]
