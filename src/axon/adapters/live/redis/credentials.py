"""The user and password of each new connection to Redis, read from the file that has the URL. Knows no command."""

from urllib.parse import unquote, urlsplit, urlunsplit

from redis.credentials import CredentialProvider
from redis.exceptions import ConnectionError

from axon.adapters.service_address import ServiceAddress
from axon.errors import DependencyDown


class FileCredentials(CredentialProvider):
    """Asked by the driver whenever it connects."""

    def __init__(self, address: ServiceAddress) -> None:
        self._address = address

    def get_credentials(self) -> tuple[str, ...]:  # type: ignore[override]
        """User and password, the password alone, or nothing. Raises the driver's own error, as a server that is gone
        does."""
        try:
            return credentials_of(self._address.current())
        except DependencyDown as error:
            raise ConnectionError(error.message) from error


def credentials_of(url: str) -> tuple[str, ...]:
    """User and password, the password alone, or nothing."""
    try:
        parts = urlsplit(url)
    except ValueError:  # its message quotes the URL
        return ()
    if parts.username:  # alone it would be taken for the password
        return unquote(parts.username), unquote(parts.password or "")
    return (unquote(parts.password),) if parts.password else ()


def without_credentials(url: str) -> str:
    """The URL without its user and password."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
