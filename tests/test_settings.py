"""Settings: where values come from, and what is refused."""

import os
from dataclasses import replace
from pathlib import Path
from typing import ClassVar
from unittest.mock import patch

import pytest

from axon.engine.config import EngineConfig
from axon.errors import Misconfigured
from axon.runtime.service_url import HIDDEN
from axon.settings import Settings, describe, environment_of, load, variable_of
from tests.runtime.test_service_url import SECRET, WRONG


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str, name: str = "some.toml") -> Path:
    path = Path(name).absolute()
    path.write_text(text)
    return path


def refusal(
    flags: dict[str, object] | None = None, environ: dict[str, str] | None = None, file: Path | None = None
) -> str:
    with pytest.raises(Misconfigured) as caught:
        load(flags, environ or {}, file)
    return caught.value.message


def test_a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default() -> None:
    file = write("[gateway]\nport = 1\nmetrics_port = 2\nmax_body_bytes = 3\n")
    environ = {"AXON_GATEWAY_PORT": "4", "AXON_GATEWAY_METRICS_PORT": "5"}
    loaded = load({"gateway.port": 6}, environ, file)
    gateway = loaded.settings.gateway
    assert (gateway.port, gateway.metrics_port, gateway.max_body_bytes, gateway.silence_s) == (6, 5, 3, 15.0)
    names = ("port", "metrics_port", "max_body_bytes", "silence_s")
    origins = [loaded.origins[f"gateway.{name}"] for name in names]
    assert origins == ["flag", "AXON_GATEWAY_METRICS_PORT", str(file), "default"]


def test_a_flag_that_was_not_given_changes_nothing() -> None:
    loaded = load({"gateway.port": None}, {})
    assert loaded.settings.gateway.port == 8000
    assert loaded.origins["gateway.port"] == "default"


def test_every_value_has_an_origin() -> None:
    loaded = load({}, {})
    assert set(loaded.origins) == set(loaded.shown()) == {each.name for each in describe()}


def test_an_unknown_variable_is_refused_with_a_suggestion() -> None:
    message = refusal(environ={"AXON_GATEWAY_PROT": "1"})
    assert "AXON_GATEWAY_PROT" in message
    assert "Did you mean AXON_GATEWAY_PORT?" in message


def test_variables_of_others_and_of_the_client_are_left_alone() -> None:
    load({}, {"AXONAL": "1", "AXON_API_KEY": "axk_x", "AXON_URL": "http://x", "PATH": "/bin"})


def test_an_unknown_flag_is_refused_with_a_suggestion() -> None:
    assert "Did you mean engine.threads?" in refusal({"engine.thread": "2"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prot = 1", "prot in"),
        ("[gatewey]\nport = 1", "Did you mean gateway?"),
        ("[gateway]\nprot = 1", "Did you mean gateway.port?"),
        ("gateway = 1", "is a section"),
        ("[gateway]\nport = '1'", "gateway.port in"),
        ("[gateway]\nport = true", "must be a whole number"),
        ("[gateway]\nport = 1.5", "must be a whole number"),
        ("[gateway]\nsilence_s = 'x'", "must be a number"),
        ("[gateway]\nsilence_s = nan", "more than 0"),
        ("[engine]\nkind = 'ecko'", "Did you mean echo?"),
        ("model = 1", "must be text"),
        ("data_dir = ''", "must be a path"),
        ("[gateway", "not valid TOML"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place_named(text: str, said: str) -> None:
    file = write(text)
    message = refusal(file=file)
    assert said in message
    assert str(file) in message


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("AXON_GATEWAY_PORT", "eighty"),
        ("AXON_GATEWAY_PORT", "65536"),
        ("AXON_GATEWAY_PORT", "-1"),
        ("AXON_GATEWAY_SILENCE_S", "0"),
        ("AXON_GATEWAY_SILENCE_S", "inf"),
        ("AXON_ENGINE_KIND", "tensorrt"),
        ("AXON_ENGINE_THREADS", "-1"),
        ("AXON_DISPATCH_NUM_LANES", "0"),
        ("AXON_DATA_DIR", ""),
    ],
)
def test_a_wrong_variable_is_refused_with_its_name(variable: str, text: str) -> None:
    assert variable in refusal(environ={variable: text})


def test_a_variable_made_by_kubernetes_is_explained() -> None:
    assert "enableServiceLinks" in refusal(environ={"AXON_GATEWAY_PORT": "tcp://10.0.0.1:8000"})


def test_zero_is_taken_where_it_means_something() -> None:
    environ = {"AXON_ENGINE_THREADS": "0", "AXON_ADMISSION_REQUESTS_PER_MINUTE": "0", "AXON_GATEWAY_PORT": "0"}
    load({}, environ)
    load({}, {"AXON_TRACES_SAMPLE_RATIO": "0", "AXON_TRACES_SLOW_S": "0"})


def test_a_lease_must_outlive_its_renewal() -> None:
    assert "worker.renew_s" in refusal(environ={"AXON_WORKER_RENEW_S": "2"})


def test_a_loop_that_is_seldom_looked_at_would_be_called_stuck() -> None:
    assert "lifecycle.lag_every_s must be at most 5" in refusal(environ={"AXON_LIFECYCLE_LAG_EVERY_S": "6"})


def test_the_metrics_need_a_port_of_their_own() -> None:
    assert "AXON_GATEWAY_METRICS_PORT" in refusal({"gateway.port": 8001})
    load({"gateway.port": 0, "gateway.metrics_port": 0}, {})


def test_axon_toml_in_the_working_folder_is_read() -> None:
    write("model = 'here.gguf'", "axon.toml")
    loaded = load({}, {})
    assert (loaded.settings.model, loaded.origins["model"]) == ("here.gguf", "axon.toml")


def test_axon_config_names_the_file() -> None:
    file = write("model = 'there.gguf'")
    assert load({}, {"AXON_CONFIG": str(file)}).settings.model == "there.gguf"


def test_a_named_file_must_exist() -> None:
    assert "does not exist" in refusal(environ={"AXON_CONFIG": "missing.toml"})
    assert "does not exist" in refusal(file=Path("missing.toml"))


def test_the_data_folder_follows_xdg() -> None:
    assert load({}, {"XDG_DATA_HOME": "/data"}).settings.data_dir == Path("/data/axon")
    assert load({}, {"XDG_DATA_HOME": "relative"}).settings.data_dir == Path.home() / ".local/share/axon"


def test_paths_are_absolute(tmp_path: Path) -> None:
    assert load({}, {"AXON_DATA_DIR": "here"}).settings.data_dir == tmp_path / "here"
    assert load({"data_dir": Path("~/x")}, {}).settings.data_dir == Path.home() / "x"


def test_what_is_left_empty_is_derived() -> None:
    settings = Settings(data_dir=Path("/data"))
    assert settings.models_dir == Path("/data/models")
    assert settings.store == "sqlite:////data/axon.db"
    assert settings.model_name == "smollm2-135m-instruct"
    assert Settings(engine=EngineConfig(kind="echo")).model_name == "echo"
    assert Settings(model="/models/Qwen3-0.6B").model_name == "Qwen3-0.6B"
    assert Settings(model="/models/tiny.Q4.gguf").model_name == "tiny.Q4"
    assert Settings(model="x", model_name="mine").model_name == "mine"


def test_secrets_are_shown_nowhere() -> None:
    environ = {
        "AXON_PEPPER": "canary",
        "AXON_STORE": "postgresql://axon:canary@db/axon",
        "AXON_LIVE": "redis://:canary@r",
    }
    loaded = load({}, environ)
    assert loaded.settings.pepper == "canary"
    assert "canary" not in repr(loaded)
    shown = loaded.shown()
    assert "canary" not in repr(shown)
    assert shown["pepper"] == HIDDEN
    assert shown["store"] == f"postgresql://axon:{HIDDEN}@db/axon"


def test_a_refusal_does_not_quote_a_secret() -> None:
    assert "canary" not in refusal(file=write("pepper = ['canary']"))


def test_every_setting_is_documented_and_has_a_variable_of_its_own() -> None:
    described = describe()
    assert all(each.doc and each.type for each in described)
    assert len({each.variable for each in described}) == len(described)
    assert variable_of("gateway.port") == "AXON_GATEWAY_PORT"


def test_defaults_pass_their_own_checks() -> None:
    defaults = load({}, {}).shown()
    given = {name: value for name, value in defaults.items() if name != "pepper"}
    assert load(given, {}).shown() == defaults


@pytest.mark.parametrize("url", WRONG)
@pytest.mark.parametrize("name", ["queue", "live", "store", "alerts.url", "traces.endpoint"])
def test_a_url_that_cannot_be_told_from_a_password_is_not_shown(name: str, url: str, tmp_path: Path) -> None:
    assert load({name: url}, {}).shown()[name] == "(hidden)"
    variable = "AXON_" + name.upper().replace(".", "_")
    assert load({}, {variable: url}).shown()[name] == "(hidden)"


def test_a_url_of_a_wrong_type_is_not_quoted(tmp_path: Path) -> None:
    (file := tmp_path / "axon.toml").write_text(f'store = ["postgresql://u:{SECRET}@h/a"]\n')
    with pytest.raises(Misconfigured) as refused:
        load({}, {}, file=file)
    assert SECRET not in str(refused.value)


def test_a_process_with_the_environment_of_settings_has_the_same_settings(tmp_path: Path) -> None:
    """Also where a file or a variable of this process says otherwise."""
    file = tmp_path / "axon.toml"
    file.write_text("[gateway]\nport = 1234\n")
    given = {
        "gateway.port": 9000,
        "live": "redis://:secret@host/1",
        "control.launcher": "process",
        "failpoints": "a=kill",
    }
    settings = load({**given, "data_dir": tmp_path, "worker.pool": "gold", "dispatch.affinity": False}, {}).settings
    with patch.dict(os.environ, {"AXON_GATEWAY_PORT": "77", "AXON_WORKER_NAME": "me", "HOME": "/home/me"}, clear=True):
        environ = environment_of(settings)
    assert environ["HOME"] == "/home/me"
    assert load(environ=environ, file=file).settings == replace(settings, failpoints="")


class TestGroupsOfHosts:
    POD: ClassVar = {"LWS_GROUP_SIZE": "2", "LWS_LEADER_ADDRESS": "large-0.large.serving", "LWS_WORKER_INDEX": "1"}

    def test_a_pod_of_a_group_knows_its_place(self) -> None:
        loaded = load({"engine.tensor_parallel": 16}, self.POD)
        engine, worker = loaded.settings.engine, loaded.settings.worker
        assert (engine.rendezvous, engine.num_local_ranks) == ("tcp://large-0.large.serving:29500", 8)
        assert worker.host_index == 1
        assert loaded.origins["engine.rendezvous"] == "LeaderWorkerSet"

    def test_what_somebody_sets_comes_first(self) -> None:
        loaded = load({}, {**self.POD, "AXON_ENGINE_RENDEZVOUS": "tcp://gpu-0:1"})
        assert loaded.settings.engine.rendezvous == "tcp://gpu-0:1"

    @pytest.mark.parametrize("size", ["", "1", "two", "-3"])
    def test_a_group_of_one_or_of_nonsense_is_none(self, size: str) -> None:
        loaded = load({}, {**self.POD, "LWS_GROUP_SIZE": size})
        assert (loaded.settings.engine.rendezvous, loaded.settings.worker.host_index) == ("", 0)


def test_ollama_without_a_key_is_refused_behind_a_proxy() -> None:
    flags: dict[str, object] = {"gateway.ollama_without_key": True, "gateway.proxies": 1}
    assert "gateway.ollama_without_key cannot be used behind a proxy, and gateway.proxies is 1" in refusal(flags)


@pytest.mark.parametrize("prefix", ["axon", "/axon/", "/", "//evil.example", "/a b"])
def test_a_prefix_that_is_no_path_is_refused(prefix: str) -> None:
    assert "gateway.path_prefix must be a path such as /axon" in refusal({"gateway.path_prefix": prefix})


ISSUER: dict[str, object] = {
    "gateway.oidc_issuer": "https://login.example.com/realms/acme",
    "gateway.oidc_client_id": "axon",
    "gateway.oidc_redirect_url": "https://axon.example.com/tools/ui/oidc/callback",
    "gateway.oidc_keys": "platform=k1a2b3c4",
}


def test_an_issuer_with_what_it_needs_is_taken() -> None:
    assert load(ISSUER, {}).settings.gateway.oidc_client_id == "axon"
    back = "http://localhost/ui/oidc/callback"
    load(ISSUER | {"gateway.oidc_issuer": "http://127.0.0.1:9000", "gateway.oidc_redirect_url": back}, {})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("oidc_issuer", "http://login.example.com", "must be an https address"),
        ("oidc_issuer", "login.example.com", "must be an https address"),
        ("oidc_issuer", "https://login.example.com?x=1", "must be an https address"),
        ("oidc_redirect_url", "", "must be an https address"),
        ("oidc_redirect_url", "https://axon.example.com/", "must end with /ui/oidc/callback"),
        ("oidc_client_id", "", "gateway.oidc_client_id must be set"),
        ("oidc_keys", "", "nobody could sign in"),
        ("oidc_keys", "platform", "pairs such as platform=k1a2b3c4"),
        ("oidc_scope", "email", "must have openid in it"),
    ],
)
def test_an_issuer_by_which_nobody_could_sign_in_safely_is_refused(name: str, value: str, said: str) -> None:
    assert said in refusal(ISSUER | {f"gateway.{name}": value})
