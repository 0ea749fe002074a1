"""Where a store on SQLite is, or would be: asked before anything is made there. Says nothing of other databases."""

from pathlib import Path

from axon.bootstrap.services import store_address
from axon.errors import Misconfigured
from axon.settings import Settings


def require_store(settings: Settings) -> None:
    """Raises ``Misconfigured`` where there is no file of the store."""
    path = _file_of(settings)
    if path is not None and not path.exists():
        raise Misconfigured(f"There is no store at {path}: name another with --data-dir or --store.")


def require_folder_of_store(settings: Settings) -> None:
    """Raises ``Misconfigured`` where a new store would be in a folder that is not there, unless it is the data folder,
    which is made: a mistyped name must not become a place where nobody looks for the store."""
    path = _file_of(settings)
    if path is None or path.parent.is_dir() or path.parent.absolute() == settings.data_dir.absolute():
        return
    raise Misconfigured(f"There is no folder {path.parent} for the store: make it first, or name another with --store.")


def _file_of(settings: Settings) -> Path | None:
    from axon.adapters.backup.database import file_of, is_sqlite

    address = store_address(settings)
    return file_of(address) if is_sqlite(address) else None
