"""The registry of the simulated world, checked at every change. A replica of it may answer that is behind."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from axon.domain.registry import record as records
from axon.domain.registry.change import Change
from axon.domain.registry.deployment import Deployment, MemberState
from axon.domain.registry.record import Edit, Record, Row, kept, kind_of, name_of, row_of, snapshot_of
from axon.domain.registry.snapshot import Snapshot
from axon.errors import DependencyDown
from tests.sim.history import History


@dataclass(slots=True)
class _State:
    """The registry after a change."""

    at: float
    snapshot: Snapshot


@dataclass(slots=True)
class SimRegistry:
    """As the statements of the real one treat its tables; ``on_removed`` is told each member that a change removes."""

    history: History
    now: Callable[[], float]
    on_closed: Callable[[Deployment, str], None]
    on_removed: Callable[[Deployment, str], None]
    away: bool = False
    lag: int = 0
    """By how many changes what is read is behind."""
    lagged_at: float = -1.0e9
    """When a read was last behind."""
    states: list[_State] = field(default_factory=lambda: [_State(-1.0, Snapshot())])
    rows: dict[tuple[str, str], Row] = field(default_factory=dict)
    trail: list[Change] = field(default_factory=list)
    num_bumps: int = 0
    """How often a change was committed that adds one to the deployment's counter."""

    # --- the port

    async def revision(self) -> int:
        return self._read().revision

    async def snapshot(self) -> Snapshot:
        return self._read()

    async def write_all(self, edits: Sequence[Edit], *, actor: str, at: float, over: int | None = None) -> int | None:
        self._answer()
        before = self.newest.revision
        stored = {_place(edit): self.rows.get(_place(edit)) for edit in edits}
        if over not in (None, before):
            return None
        for edit in edits:
            row = stored[_place(edit)]
            if not records.is_unchanged(edit[0], row.revision if row else None):
                return None
        for number, edit in enumerate(edits, start=before + 1):
            self._put(edit, number, actor, at)
        self.states.append(_State(self.now(), snapshot_of(before + len(edits), self.rows.values())))
        self._check(edits)
        return before + len(edits)

    async def removals(self, *, kind: str, name: str) -> Sequence[Change]:
        self._answer()
        return [each for each in self.trail if (each.kind, each.name, each.action) == (kind, name, "remove")]

    # --- what is true

    @property
    def newest(self) -> Snapshot:
        return self.states[-1].snapshot

    def at_revision(self, revision: int) -> Snapshot:
        return next(each.snapshot for each in reversed(self.states) if each.snapshot.revision == revision)

    def between(self, since: float, until: float) -> list[Snapshot]:
        """Every snapshot that was the newest at some moment of a time."""
        ends = [state.at for state in self.states[1:]] + [float("inf")]
        return [s.snapshot for s, end in zip(self.states, ends, strict=True) if s.at <= until and end >= since]

    def _read(self) -> Snapshot:
        self._answer()
        if self.lag:
            self.lagged_at = self.now()
        return self.states[max(0, len(self.states) - 1 - self.lag)].snapshot

    def _answer(self) -> None:
        if self.away:
            raise DependencyDown("the store is away")

    def _put(self, edit: Edit, number: int, actor: str, at: float) -> None:
        (old, new), place = edit, _place(edit)
        stored = self.rows.pop(place, None)
        after = ""
        if new is not None:
            after = row_of(replace(new, revision=number)).body
            after = kept(stored.body, after) if stored else after
            self.rows[place] = Row(kind=place[0], name=place[1], revision=number, body=after)
        action = "add" if old is None else "remove" if new is None else "change"
        before = stored.body if stored else ""
        self.trail.append(
            Change(
                number=number,
                at=at,
                actor=actor,
                kind=place[0],
                name=place[1],
                action=action,
                before=before,
                after=after,
            )
        )

    def _check(self, edits: Sequence[Edit]) -> None:
        before, after = self.states[-2].snapshot, self.newest
        self.history.note(f"registry {after.revision}: {', '.join(' '.join(_place(edit)) for edit in edits)}")
        for deployment in after.deployments.values():
            if strange := [each.version for each in deployment.members if each.version not in after.versions]:
                raise self.history.broken(f"{deployment.name} has {strange}, which are not registered")
            if deployment.member(deployment.stable) is None:
                raise self.history.broken(f"{deployment.name} has no stable version")
        for alias in after.aliases.values():
            if alias.deployment not in after.deployments:
                raise self.history.broken(f"{alias.name} leads to {alias.deployment}, which is not there")
        for old, new in edits:
            if isinstance(old, Deployment) and isinstance(new, Deployment):
                self.num_bumps += new.memory_bytes - old.memory_bytes
        for name, deployment in after.deployments.items():
            if name in before.deployments:
                self._check_members(before.deployments[name], deployment)

    def _check_members(self, before: Deployment, after: Deployment) -> None:
        if after.memory_bytes != self.num_bumps:
            raise self.history.broken(f"a change of {after.name} was overwritten: {after.memory_bytes}")
        for old in before.members:
            new = after.member(old.version)
            if new is None:
                if old.state is not MemberState.CLOSED:
                    raise self.history.broken(f"{old.version} was removed while it was {old.state}")
                self.on_removed(before, old.version)
            elif new.state is MemberState.CLOSED and old.state is not MemberState.CLOSED:
                self.on_closed(after, old.version)


def _place(edit: Edit) -> tuple[str, str]:
    known: Record | None = edit[1] or edit[0]
    assert known is not None
    return kind_of(known), name_of(known)
