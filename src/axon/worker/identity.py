"""A worker's identity among the workers of its deployment. Knows no job."""

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class Identity:
    """One life of one worker; all but the version is known from the start."""

    deployment: str
    incarnation: str
    """The id of this life: leases, epochs and presences are held under it."""
    name: str = ""
    """The worker's name, the same after a restart."""
    pool: str = ""
    """The worker takes the jobs of tenants that have this pool; empty is the pool that everybody shares."""
    letter: str = ""
    """The letter of its version in the names of lanes; empty for a deployment's first version."""
    marks: frozenset[str] = frozenset()
    """Other names of its version, under which earlier releases made jobs."""
    version: str = ""
    """The version of the deployment that this worker runs, known when its engine is up. Jobs that were made for another
    version are left to other workers; empty runs every version."""

    def runs(self, version: str) -> bool:
        """Whether jobs of this version run here."""
        return self.version in ("", version) or version in self.marks
