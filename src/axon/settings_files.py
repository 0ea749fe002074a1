"""URLs of services that are in files, where whoever rotates their passwords writes them. Reads no environment."""

from collections.abc import Mapping
from pathlib import Path

from axon.errors import Misconfigured

URLS = ("queue", "live", "store")
"""Settings whose value may be in a file, which the setting of the same name and ``_file`` names."""


def read_url_files(values: Mapping[str, object], origins: Mapping[str, str]) -> dict[str, str]:
    """What the files say, by the names of the settings; raises ``Misconfigured`` for one that says nothing, and for a
    URL that is given besides."""
    return {name: _read(name, values, origins) for name in URLS if values.get(f"{name}_file")}


def _read(name: str, values: Mapping[str, object], origins: Mapping[str, str]) -> str:
    if name in values:
        raise Misconfigured(
            f"{name} ({origins[name]}) and {name}_file ({origins[f'{name}_file']}) are both given. Unset one of them."
        )
    path = Path(str(values[f"{name}_file"]))
    try:
        url = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise Misconfigured(f"{name}_file is {path}, which cannot be read: {reason}.") from error
    if not url:
        raise Misconfigured(f"{name}_file is {path}, which is empty: write the URL of the service into it.")
    return url
