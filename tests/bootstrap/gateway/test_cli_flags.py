"""Commands that the console shows find the server's store, and carry no secret."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from axon.bootstrap.gateway.cli_flags import cli_flags
from axon.gateway.pages.parts import CliFlags
from axon.settings import load

HOME = {"HOME": "/home/ada", "XDG_DATA_HOME": "/home/ada/data"}
DEFAULT = Path("/home/ada/data/axon")


def flags_of(
    environ: dict[str, str] | None = None, flags: dict[str, object] | None = None, file: Path | None = None
) -> CliFlags:
    settings = load(flags, {**HOME, **(environ or {})}, file).settings
    return cli_flags(settings, default_data_dir=DEFAULT)


def test_a_server_with_the_defaults_needs_no_flag() -> None:
    assert flags_of() == CliFlags()
    assert flags_of(flags={"data_dir": str(DEFAULT), "gateway.port": 9000}) == CliFlags()


def test_another_data_folder_is_named_whatever_set_it() -> None:
    expected = CliFlags(store=("--data-dir", "/srv/axon"), server=("--data-dir", "/srv/axon"))
    assert flags_of(flags={"data_dir": "/srv/axon"}) == expected
    assert flags_of({"AXON_DATA_DIR": "/srv/axon"}) == expected


def test_a_settings_file_is_named_as_a_whole(tmp_path: Path) -> None:
    file = tmp_path / "axon.toml"
    file.write_text('data_dir = "/srv/axon"\nstore = "postgresql://axon:hunter2@db/axon"\n')
    named = ("--config", str(file))
    assert flags_of(file=file) == CliFlags(store=named, server=named)
    assert flags_of({"AXON_DATA_DIR": "/other"}, file=file).store == (*named, "--data-dir", "/other")


def test_a_fleet_is_asked_by_its_address_and_its_secrets_stay_in_variables() -> None:
    found = flags_of(
        {"AXON_STORE": "postgresql://axon:hunter2@db/axon", "AXON_LIVE": "redis://cache", "AXON_PEPPER": "p" * 32}
    )
    assert found == CliFlags(by_address=True, variables=("AXON_STORE", "AXON_LIVE", "AXON_PEPPER"))
    assert flags_of({"AXON_STORE": "postgresql://db/axon"}).store == ("--store", "postgresql://db/axon")
    assert flags_of(flags={"store": "sqlite:////srv/x.db"}).store == ("--store", "sqlite:////srv/x.db")


def test_a_url_in_a_file_needs_the_variable_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("postgresql://axon:hunter2@db/axon")
    found = flags_of({"AXON_STORE_FILE": str(tmp_path / "store")})
    assert (found.store, found.variables) == ((), ("AXON_STORE_FILE",))


@given(
    secret=st.text("abcdefgh0123456789/@:?&=%", min_size=6, max_size=20).filter(lambda text: text not in HOME["HOME"]),
    form=st.sampled_from(
        [
            "postgresql://axon:{}@db/axon",
            "postgresql://db/axon?password={}",
            "postgresql://axon:{}@db/axon?sslmode=require",
        ]
    ),
    by_flag=st.booleans(),
)
def test_no_password_of_the_store_is_told(secret: str, form: str, *, by_flag: bool) -> None:
    url = form.format(f"Zq{secret}")
    found = flags_of(flags={"store": url}) if by_flag else flags_of({"AXON_STORE": url})
    assert "Zq" not in repr(found)
