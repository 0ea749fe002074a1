"""Which store a backup reads: the server's own, over TLS as the server does."""

from pathlib import Path

import pytest

from axon.adapters.backup.database import file_of, is_sqlite
from axon.adapters.store.postgres import parameters_for
from axon.bootstrap.services import store_address
from axon.settings import Settings, load

CA = Path("/etc/axon/ca.pem")


@pytest.mark.parametrize(
    ("store", "mode"),
    [("postgresql://a:b@host/axon", "verify-full"), ("postgresql://host?sslmode=require", "require")],
)
def test_the_ca_of_the_services_vouches_for_the_store(store: str, mode: str) -> None:
    trusting = parameters_for(store_address(Settings(store=store, service_ca_file=CA)))
    assert (trusting["sslmode"], trusting["sslrootcert"], trusting["host"]) == (mode, str(CA), "host")
    assert "sslrootcert" not in parameters_for(store_address(Settings(store=store)))


def test_a_store_in_a_file_is_read_as_the_file_says_by_then(tmp_path: Path) -> None:
    (file := tmp_path / "url").write_text("postgresql://first@host/axon")
    address = store_address(load({"store_file": str(file)}, {}).settings)
    file.write_text("postgresql://second@host/axon")
    assert parameters_for(address)["user"] == "second"


def test_a_sqlite_store_needs_no_ca(tmp_path: Path) -> None:
    address = store_address(Settings(store=f"sqlite:///{tmp_path}/axon.db", service_ca_file=CA))
    assert is_sqlite(address)
    assert file_of(address) == tmp_path / "axon.db"
