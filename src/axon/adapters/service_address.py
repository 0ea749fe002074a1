"""The address of a service: its URL, or a file that holds it and is read for every connection. Knows no driver.

Whoever rotates a password writes the new URL into the file. Connections that are open stay as they are, and the next
one is made with what the file says then.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from axon.errors import DependencyDown, Misconfigured
from axon.runtime.service_url import scheme_of
from axon.runtime.url_file import UrlFile

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAddress:
    """Where a service is, who we are there, and whose certificates we trust."""

    url: str = field(repr=False)
    """As it was at the start of the process."""
    file: UrlFile | None = None
    """Holds the URL; None where it never changes."""
    ca_file: Path | None = None
    """Certificates (PEM) of those that may vouch for the service; None for those that the system trusts."""

    def current(self) -> str:
        """The URL for a new connection; raises ``DependencyDown`` if its file has none."""
        if self.file is None:
            return self.url
        try:
            url = self.file.read()
        except Misconfigured as error:
            raise DependencyDown(error.message) from error
        if scheme_of(url) != scheme_of(self.url):
            reason = f"it holds no URL that begins with {scheme_of(self.url)}://"
            raise DependencyDown(self.file.refusal(reason))
        return url

    def parsed(self, parse: Callable[[str], T]) -> T:
        """What ``parse`` makes of the URL for a new connection. One that it refuses counts as an outage when it comes
        from a file: the process has started with a good one, and the file may be corrected."""
        try:
            return parse(self.current())
        except Misconfigured as error:
            if self.file is None:
                raise
            raise DependencyDown(f"The URL in {self.file.path} cannot be used. {error.message}") from error


def address_of(url: str | ServiceAddress) -> ServiceAddress:
    """The address of a service that is named by its URL alone, or by an address already."""
    return url if isinstance(url, ServiceAddress) else ServiceAddress(url=url)
