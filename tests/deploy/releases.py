"""What a release of the chart promised to those who installed it: its values, and what must not change under them.

``python -m tests.deploy.releases`` keeps those of the chart's present version, once, when it is released.
"""

import sys
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.chart import CHART, Object, of_kind, release_set, rendered

FOLDER = Path(__file__).with_name("releases")
_FIXED = "# What chart {version} made of its own values, as far as a later chart must not change it.\n"


def version() -> str:
    return str(yaml.safe_load((CHART / "Chart.yaml").read_text())["version"])


def values_of(release: str) -> Path:
    """A file with all values of that release, with those that a minimal installation gives."""
    return FOLDER / f"{release}-values.yaml"


def fixed_of(release: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / f"{release}-fixed.yaml").read_text())
    return found


def kept() -> list[str]:
    """The releases whose values are kept."""
    return sorted(path.name.removesuffix("-values.yaml") for path in FOLDER.glob("*-values.yaml"))


def fixed(objects: list[Object]) -> dict[str, Any]:
    """What cannot change under an installation: selectors are immutable, names of accounts and Services are known."""
    return {
        "selectors": {
            each["metadata"]["name"]: each["spec"]["selector"]["matchLabels"] for each in of_kind(objects, "Deployment")
        },
        "services": {
            each["metadata"]["name"]: sorted(port["port"] for port in each["spec"]["ports"])
            for each in of_kind(objects, "Service")
        },
        "accounts": sorted(each["metadata"]["name"] for each in of_kind(objects, "ServiceAccount")),
    }


def keep() -> None:
    """Writes the files of the present version."""
    release = version()
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    values["batchFiles"]["podLocal"] = True
    FOLDER.mkdir(exist_ok=True)
    values_of(release).write_text(yaml.safe_dump(values, sort_keys=False))
    found = fixed(rendered(release_set(release)))
    text = _FIXED.format(version=release) + yaml.safe_dump(found)
    (FOLDER / f"{release}-fixed.yaml").write_text(text)


if __name__ == "__main__":
    if version() in kept() and "--again" not in sys.argv:
        sys.exit(
            f"{version()} is kept already: a release does not change. Before it is released, --again writes it anew."
        )
    keep()
