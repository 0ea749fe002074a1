"""``axon config``: the settings as a table or as JSON. Knows no setting by name."""

import json
import shutil
import textwrap
from typing import TYPE_CHECKING

from axon.console.tables import print_table
from axon.settings import describe

if TYPE_CHECKING:
    from axon.settings import Described, Loaded


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
    """Prints every setting with its type, default and meaning."""
    if as_json:
        print(json.dumps([each._asdict() for each in describe()], indent=2))
        return
    columns = shutil.get_terminal_size().columns
    print("\n\n".join(description(each, columns) for each in describe()))


def description(each: "Described", columns: int) -> str:
    """One setting as text: name, type and default, then its meaning, in lines of at most ``columns`` characters."""
    default = f", {each.default}" if each.default else ""
    head = textwrap.wrap(f"{each.name}: {each.type}{default}", columns, subsequent_indent="    ")
    doc = each.doc.replace("``", "")
    return "\n".join([*head, *textwrap.wrap(doc, columns, initial_indent="    ", subsequent_indent="    ")])
