"""All policies and the oracle on one load: figures beside each other. Knows no terminal and no file."""

from dataclasses import dataclass

from benchmarks.scaling import oracle
from benchmarks.scaling.load import Load
from benchmarks.scaling.policies import POLICIES, Schedule
from benchmarks.scaling.simulation import Result, simulate

Figures = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Results of one load by policy; ``oracle`` is one of them."""

    load: Load
    results: dict[str, Result]
    fluid_hours: float

    def figures(self) -> dict[str, Figures]:
        """The figures of each policy."""
        least = self.results["oracle"].replica_hours
        return {
            name: {
                "within": result.within,
                "hours_ratio": result.replica_hours / least if least else 0.0,
                "turns_per_h": result.turns_per_h,
                "ttft_p99_s": min(1e6, result.ttft_p99_s),
                "refused": result.refused,
                "replica_hours": result.replica_hours,
                "most": result.most,
                "requests": result.requests,
            }
            for name, result in self.results.items()
        }


def compare(load: Load, policies: tuple[str, ...] = tuple(POLICIES)) -> Comparison:
    """Runs the oracle and the policies on the same arrivals."""
    runs: dict[str, list[Result]] = {name: [] for name in ("oracle", *policies)}
    fluid = 0.0
    for each in load.deployments():
        arrivals = each.arrivals()
        fluid += oracle.fluid_hours(each, arrivals)
        runs["oracle"].append(simulate(each, Schedule(oracle.least_schedule(each, arrivals)), arrivals))
        for name in policies:
            runs[name].append(simulate(each, POLICIES[name](each), arrivals))
    return Comparison(load=load, results={name: _sum(each) for name, each in runs.items()}, fluid_hours=fluid)


def _sum(results: list[Result]) -> Result:
    """One result of several deployments: hours add up, changes of direction are the mean of one deployment."""
    if len(results) == 1:
        return results[0]
    requests = sum(each.requests for each in results)

    points = [tuple(zip(*(each.points for each in results), strict=False))]
    return Result(
        within=sum(each.within * each.requests for each in results) / max(1, requests),
        replica_hours=sum(each.replica_hours for each in results),
        turns_per_h=sum(each.turns_per_h for each in results) / len(results),
        ttft_p99_s=max(each.ttft_p99_s for each in results),
        refused=sum(each.refused * each.requests for each in results) / max(1, requests),
        requests=requests,
        most=sum(each.most for each in results),
        points=tuple((moment[0][0], sum(num for _, num in moment)) for moment in points[0]),
    )


def is_beaten(figures: dict[str, Figures], name: str = "ours") -> list[str]:
    """Other policies that are ahead of ``name`` in requests within the target or in hours, and behind in neither."""
    own = figures[name]
    return [
        other
        for other, each in figures.items()
        if other not in (name, "oracle")
        and each["within"] >= own["within"]
        and each["hours_ratio"] <= own["hours_ratio"]
        and (each["within"], each["hours_ratio"]) != (own["within"], own["hours_ratio"])
    ]
