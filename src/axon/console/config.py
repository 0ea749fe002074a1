"""``axon config``: the settings as a table or as JSON. Knows no setting by name."""

import json
from typing import TYPE_CHECKING

from axon.console.tables import print_table
from axon.settings import describe

if TYPE_CHECKING:
    from axon.settings import Loaded


def show(loaded: "Loaded", *, as_json: bool) -> None:
    """Effective values with their origins."""
    values = loaded.shown()
    if as_json:
        print(
            json.dumps(
                {name: {"value": value, "from": loaded.origins[name]} for name, value in values.items()}, indent=2
            )
        )
        return
    rows = [(name, str(value), loaded.origins[name]) for name, value in values.items()]
    print_table(("setting", "value", "from"), rows)


def show_described(*, as_json: bool) -> None:
    """What can be set."""
    if as_json:
        print(json.dumps([each._asdict() for each in describe()], indent=2))
        return
    rows = [(each.name, each.type, each.default, each.doc.replace("``", "")) for each in describe()]
    print_table(("setting", "type", "default", "meaning"), rows)
