"""TLS options of a Redis URL beside a CA file: each counts, and only the named CAs are trusted. Connects to nothing."""

import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from redis.asyncio.connection import RedisSSLContext, SSLConnection, parse_url

from axon.adapters.live.redis.tls import sharing
from tests.services.certificates import shared_authority

OPTIONS = {
    "check_hostname": "false",
    "cert_reqs": "optional",
    "min_version": str(int(ssl.TLSVersion.TLSv1_3)),
    "ciphers": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "include_verify_flags": "VERIFY_CRL_CHECK_LEAF",
    "exclude_verify_flags": "VERIFY_X509_STRICT,VERIFY_X509_TRUSTED_FIRST",
}
"""Options by their names without ``ssl_``, each with a value that is not the default."""
OF_TRUST = {"ca_certs", "ca_data", "ca_path"}
OF_US = {"certfile", "keyfile", "password"}


def _made(**options: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Our context for a URL with these options, and the driver's own."""
    query = urlencode({f"ssl_{name}": value for name, value in options.items()})
    arguments: dict[str, Any] = dict(parse_url(f"rediss://cache?{query}"))
    ours = sharing(arguments.pop("connection_class"))(**arguments)
    assert isinstance(ours, SSLConnection)
    return ours._connection_arguments()["ssl"], SSLConnection(**arguments).ssl_context.get()


def _seen(context: ssl.SSLContext) -> dict[str, object]:
    return {
        "check_hostname": context.check_hostname,
        "cert_reqs": context.verify_mode,
        "min_version": context.minimum_version,
        "ciphers": [each["name"] for each in context.get_ciphers()],
        "verify_flags": context.verify_flags,
    }


def test_the_list_of_options_is_the_drivers() -> None:
    assert set(RedisSSLContext.__slots__) - {"context"} == set(OPTIONS) | OF_TRUST | OF_US


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_counts_beside_a_ca_file(name: str) -> None:
    plain, _ = _made(ca_certs=str(shared_authority().file))
    ours, drivers = _made(ca_certs=str(shared_authority().file), **{name: OPTIONS[name]})
    assert _seen(ours) == _seen(drivers)
    assert _seen(ours) != _seen(plain)


def test_only_the_named_cas_are_trusted() -> None:
    file = shared_authority().file
    by_file, _ = _made(ca_certs=str(file))
    by_data, _ = _made(ca_data=file.read_text())
    assert [len(context.get_ca_certs()) for context in (by_file, by_data)] == [1, 1]


def test_our_own_certificate_is_shown_beside_a_ca_file(tmp_path: Path) -> None:
    certificate, key = shared_authority().certificate(tmp_path, "axon")
    _made(ca_certs=str(shared_authority().file), certfile=str(certificate), keyfile=str(key))
    with pytest.raises(FileNotFoundError):
        _made(ca_certs=str(shared_authority().file), certfile=str(tmp_path / "nowhere"))
