"""Which store a backup reads: the server's own, over TLS as the server does."""

from pathlib import Path

import pytest

from axon.bootstrap.backups import store_url
from axon.settings import Settings

CA = "/etc/axon/ca.pem"
TRUST = "sslmode=verify-full&sslrootcert=%2Fetc%2Faxon%2Fca.pem"


@pytest.mark.parametrize(
    ("store", "expected"),
    [
        ("sqlite:///axon.db", "sqlite:///axon.db"),
        ("postgresql://a:b@host/axon", f"postgresql://a:b@host/axon?{TRUST}"),
        ("postgresql://host/axon?sslmode=require", f"postgresql://host/axon?{TRUST.replace('verify-full', 'require')}"),
    ],
)
def test_the_ca_of_the_services_vouches_for_the_store(store: str, expected: str) -> None:
    assert store_url(Settings(store=store, service_ca_file=Path(CA))) == expected
    assert store_url(Settings(store=store)) == store
