"""What a backup may name: tables, columns and parts. Whoever wrote the archive may not choose them. Pure functions."""

import re
from collections.abc import Collection, Iterator, Mapping

from axon.adapters.backup.rows import KINDS
from axon.adapters.backup.writing import PEPPER
from axon.adapters.files.names import is_name
from axon.adapters.store import schema
from axon.domain.backup import Manifest, TableFacts

FILES = "files"
"""Folder of the archive with the bytes: ``files/ID/NUMBER``."""
TABLES = "tables"
"""Folder of the archive with the rows: ``tables/NAME/NUMBER.rows.gz``."""
_NAME = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)
_NUMBER = re.compile(r"[0-9]{6,12}")
_ROWS = re.compile(r"[0-9]{6,12}\.rows\.gz")


def faults(manifest: Manifest) -> Iterator[str]:
    """What is wrong with the names in a manifest, each as the end of a sentence."""
    for table in manifest.tables:
        yield from _of_table(table)
    names = [table.name for table in manifest.tables]
    if len(set(names)) < len(names):
        yield "it has a table twice"
    for part in manifest.parts:
        if not _is_part(part.name, names):
            yield f"{part.name!r} is none of Axon's parts"
    has_pepper = any(part.name == PEPPER for part in manifest.parts)
    if has_pepper != (manifest.pepper is not None and manifest.pepper.included):
        yield "it has a pepper that its manifest does not tell of" if has_pepper else "its pepper is missing"


def foreign_to(present: Mapping[str, Collection[str]], manifest: Manifest) -> Iterator[str]:
    """What the manifest names and tables of its migration, with these columns, do not have."""
    for table in manifest.tables:
        if table.name not in present:
            yield f"migration {manifest.revision} has no table {table.name!r}"
            continue
        for column in table.columns:
            if column.name not in present[table.name]:
                yield f"migration {manifest.revision} has no column {column.name!r} of {table.name}"


def is_file_part(name: str) -> bool:
    """Whether this is the name of a part below ``files/``: an id that leads nowhere else, and a number."""
    own, _, number = name.partition("/")
    return is_name(own) and _NUMBER.fullmatch(number) is not None


def _of_table(table: TableFacts) -> Iterator[str]:
    for name in (table.name, *(column.name for column in table.columns)):
        if not _NAME.fullmatch(name):
            yield f"{name!r} is no name of a table or a column"
    if table.name not in schema.metadata.tables:
        yield f"{table.name!r} is none of Axon's tables"
    if len({column.name for column in table.columns}) < len(table.columns):
        yield f"{table.name!r} has a column twice"
    if not table.columns:
        yield f"{table.name!r} has no column"
    for column in table.columns:
        if column.kind not in KINDS:
            yield f"{column.kind!r} is no kind of a column"


def _is_part(name: str, tables: Collection[str]) -> bool:
    folder, _, rest = name.partition("/")
    if folder == TABLES:
        table, _, number = rest.partition("/")
        return table in tables and _ROWS.fullmatch(number) is not None
    return is_file_part(rest) if folder == FILES else name == PEPPER
