"""Common parts of the commands for models, deployments, aliases and prices: they work on the store itself."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from axon.console.administration import in_store, show_done, show_listed
from axon.console.flags import of_store

if TYPE_CHECKING:
    from axon.domain.registry.record import Record
    from axon.domain.registry.snapshot import Snapshot
    from axon.registry.catalog import Catalog
    from axon.settings import Settings

T = TypeVar("T")
R = TypeVar("R", bound="Record")

Revision = Annotated[
    int | None,
    typer.Option("--revision", metavar="N", help="Refuse the change if this is no longer its revision."),
]


class RegistryAccess:
    """The store that the flags name, and the ``live`` in which gateways are told of a change."""

    def __init__(
        self,
        store: str | None = None,
        data_dir: Path | None = None,
        config_file: Path | None = None,
        live: str | None = None,
        *,
        settings: "Settings | None" = None,
    ) -> None:
        """``settings`` that were loaded before go before the flags."""
        self._settings = settings or of_store(store, data_dir, config_file, live)

    def read(self) -> "Snapshot":
        """The whole registry."""
        return in_store(self._settings, lambda admin: admin.catalog.snapshot())

    def change(self, act: Callable[["Catalog"], Awaitable[T]], *, makes: bool = False) -> T:
        """Runs one change, and tells gateways of it where ``live`` is shared. ``makes``: a store that does not exist is
        created."""
        return in_store(self._settings, lambda admin: act(admin.catalog), makes=makes, tells=True)


def show_record(record: "Record", sentence: str, *, as_json: bool) -> None:
    """Prints the result of a change."""
    from axon.registry.facts import facts_of

    show_done(sentence, facts_of(record), as_json=as_json)


def show_records(
    records: Sequence[R], columns: Mapping[str, Callable[[R], str]], *, as_json: bool, nothing: str = ""
) -> None:
    """Prints a list of records, as a table with these columns or as the API shows them; ``nothing`` is said of an
    empty one."""
    import sys

    from axon.registry.facts import facts_of

    if not records and nothing and not as_json:
        print(nothing, file=sys.stderr)
    rows = [[cell(record) for cell in columns.values()] for record in records]
    show_listed([facts_of(record) for record in records], list(columns), rows, as_json=as_json)


def number(value: float) -> str:
    """A number without needless zeros."""
    return f"{value:.15g}"
