"""The rule file of Prometheus: recorded shares, burn rates and all other alerts, with every time scaled. Pure."""

from collections.abc import Sequence

from axon.monitoring.alert import RUNBOOKS, Alert, Recording, Rule
from axon.monitoring.alerts import GROUPS
from axon.monitoring.objectives import OBJECTIVES

RECORDINGS: tuple[Recording, ...] = tuple(each for objective in OBJECTIVES for each in objective.recordings())
ALERTS: tuple[Alert, ...] = (
    *(each for objective in OBJECTIVES for each in objective.alerts()),
    *(each for alerts in GROUPS.values() for each in alerts),
)


def alert_names() -> list[str]:
    """Each name once, in the order of the file; an objective has three rules of one name."""
    return list(dict.fromkeys(each.name for each in ALERTS))


def rule_file(factor: float = 1.0, runbooks: str = RUNBOOKS) -> dict[str, object]:
    """The file as a value; with a factor, every window and every waiting time is that much as long."""
    return {
        "groups": [
            {"name": "axon-objectives", "rules": [each.rule(factor) for each in RECORDINGS]},
            {"name": "axon-burn-rates", "rules": _burn_rates(factor, runbooks)},
            *({"name": name, "rules": _rules(alerts, factor, runbooks)} for name, alerts in GROUPS.items()),
        ]
    }


def _burn_rates(factor: float, runbooks: str) -> list[Rule]:
    return [each.rule(factor, runbooks) for objective in OBJECTIVES for each in objective.alerts()]


def _rules(alerts: Sequence[Alert], factor: float, runbooks: str) -> list[Rule]:
    return [each.rule(factor, runbooks) for each in alerts]
