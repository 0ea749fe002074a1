"""URLs of services that are in files, where whoever rotates their passwords writes them. Reads no environment."""

from collections.abc import Callable, Mapping
from pathlib import Path

from axon.errors import Misconfigured
from axon.runtime.url_file import UrlFile

URLS = ("queue", "live", "store")
"""Settings whose value may be in a file, which the setting of the same name and ``_file`` names."""


def displaced(layer: Mapping[str, object], origin_of: Callable[[str], str]) -> set[str]:
    """The settings of sources below this one that no longer count: a URL takes the place of a file with one, and a file
    that of a URL. Raises ``Misconfigured`` if the source says both."""
    gone: set[str] = set()
    for url, file in ((name, f"{name}_file") for name in URLS):
        if url in layer and file in layer:
            raise Misconfigured(f"{url} ({origin_of(url)}) and {file} ({origin_of(file)}) are both given. Unset one.")
        gone |= {file} if url in layer else {url} if file in layer else set()
    return gone


def read_url_files(values: Mapping[str, object]) -> dict[str, str]:
    """What the files say, by the names of the settings; raises ``Misconfigured`` for one that says nothing."""
    named = {name: values.get(f"{name}_file") for name in URLS}
    return {name: UrlFile(setting=name, path=Path(str(path))).read() for name, path in named.items() if path}
