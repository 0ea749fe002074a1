"""What may be added to the registry and taken from it. Pure functions of a snapshot; each raises what is wrong."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from axon.domain.names import SERVED_RULE, is_served_name
from axon.domain.registry.adapter import Adapter
from axon.domain.registry.deployment import Alias, Deployment
from axon.domain.registry.model import Model
from axon.domain.registry.price import Price
from axon.domain.registry.record import Record
from axon.domain.registry.snapshot import Snapshot
from axon.domain.registry.version import EngineSettings, Version
from axon.domain.tenants.tenant import check_id, check_no_key, is_pool
from axon.errors import Conflict, InvalidInput, NotFound
from axon.registry.scaling_rules import check_scaling

MAX_FALLBACKS = 8
MAX_REPLICAS = 1000
MAX_LANES = 96
MAX_FINGERPRINTS = 32
_MAX_TEXT = 1024
_MOST = float(1 << 53)
"""Largest integer that every JSON reader represents exactly."""
_LAST_SECOND = 253402300799.0
"""Unix time of the last second of the year 9999, the last that can be shown as a date."""


def model_of(snapshot: Snapshot, name: str) -> Model:
    """The model; raises ``NotFound``."""
    if found := snapshot.models.get(name):
        return found
    raise NotFound(f"There is no model '{name}' in the registry.", code="model_not_found", param="model")


def version_of(snapshot: Snapshot, version: str) -> Version:
    """The version with this id; raises ``NotFound``."""
    if found := snapshot.versions.get(version):
        return found
    raise NotFound(f"There is no version '{version}' in the registry.", code="version_not_found", param="version")


def deployment_of(snapshot: Snapshot, name: str, *, param: str = "deployment") -> Deployment:
    """The deployment; raises ``NotFound``."""
    if found := snapshot.deployments.get(name):
        return found
    raise NotFound(f"There is no deployment '{name}' in the registry.", code="deployment_not_found", param=param)


def alias_of(snapshot: Snapshot, name: str) -> Alias:
    """The alias; raises ``NotFound``."""
    if found := snapshot.aliases.get(name):
        return found
    raise NotFound(f"There is no alias '{name}' in the registry.", code="alias_not_found", param="alias")


def adapter_of(snapshot: Snapshot, adapter: str) -> Adapter:
    """The adapter with this id; raises ``NotFound``."""
    if found := snapshot.adapters.get(adapter):
        return found
    raise NotFound(f"There is no adapter '{adapter}' in the registry.", code="adapter_not_found", param="adapter")


def with_record(snapshot: Snapshot, record: Record) -> Snapshot:
    """The registry with this record in it."""
    match record:
        case Model():
            return replace(snapshot, models={**snapshot.models, record.name: record})
        case Version():
            return replace(snapshot, versions={**snapshot.versions, record.id: record})
        case Deployment():
            return replace(snapshot, deployments={**snapshot.deployments, record.name: record})
        case Alias():
            return replace(snapshot, aliases={**snapshot.aliases, record.name: record})
        case Price():
            return replace(snapshot, prices=(*snapshot.prices, record))
        case Adapter():
            return replace(snapshot, adapters={**snapshot.adapters, record.id: record})


def check_new(snapshot: Snapshot, record: Record) -> None:
    """Raises what forbids that the record is added."""
    match record:
        case Model():
            check_id(record.name)
            _check_free(record.name, snapshot.models, "model")
        case Version():
            _check_new_version(snapshot, record)
        case Deployment():
            check_id(record.name)
            _check_free(record.name, snapshot.deployments, "deployment")
            _check_not_shadowed(record.name, snapshot.aliases, "An alias")
        case Alias():
            check_id(record.name)
            _check_free(record.name, snapshot.aliases, "alias")
        case Price():
            _check_free_time(snapshot, record)
        case Adapter():
            _check_free(record.id, snapshot.adapters, "adapter")
    check(snapshot, record)


def check(snapshot: Snapshot, record: Record) -> None:
    """Raises what is wrong with a record, new or changed."""
    match record:
        case Model():
            _check_range("max_model_len", record.max_model_len, 0, _MOST)
            _check_text("licence", record.licence, needed=False)
            if not record.capabilities:
                raise InvalidInput("'capabilities' must name at least one.", param="capabilities")
        case Deployment():
            _check_deployment(snapshot, record)
        case Alias():
            deployment_of(snapshot, record.deployment)
            _check_not_shadowed(record.name, snapshot.deployments, "A deployment")
        case Price():
            _check_price(snapshot, record)
        case Adapter():
            _check_adapter(record)
            _check_runs_adapters(snapshot, record)


def check_model_unused(snapshot: Snapshot, model: Model) -> None:
    """Raises ``Conflict`` while the model has versions or deployments."""
    versions = [each.id for each in snapshot.versions.values() if each.model == model.name]
    deployments = [each.name for each in snapshot.deployments.values() if each.model == model.name]
    _check_none(deployments, f"The model '{model.name}' is deployed", "model_in_use")
    _check_none(versions, f"The model '{model.name}' has versions", "model_in_use")
    adapters = [each.id for each in snapshot.adapters.values() if each.model == model.name]
    _check_none(adapters, f"The model '{model.name}' has adapters", "model_in_use")


def check_version_unused(snapshot: Snapshot, version: Version) -> None:
    """Raises ``Conflict`` while a deployment or another version needs the version."""
    deployments = [each.name for each in snapshot.deployments.values() if each.member(version.id)]
    drafted = [each.id for each in snapshot.versions.values() if each.settings.draft == version.id]
    _check_none(deployments, f"The version '{version.id}' is deployed", "version_in_use")
    _check_none(drafted, f"The version '{version.id}' drafts for others", "version_in_use")


def check_deployment_unused(snapshot: Snapshot, deployment: Deployment) -> None:
    """Raises ``Conflict`` while aliases or other deployments lead to the deployment."""
    aliases = [each.name for each in snapshot.aliases.values() if each.deployment == deployment.name]
    others = [each.name for each in snapshot.deployments.values() if deployment.name in each.fallbacks]
    _check_none(aliases, f"Aliases stand for the deployment '{deployment.name}'", "deployment_in_use")
    _check_none(others, f"Deployments fall back on the deployment '{deployment.name}'", "deployment_in_use")


def check_pinned(version: str, num_sessions: int) -> None:
    """Raises ``Conflict`` while sessions are pinned to the version."""
    if num_sessions:
        sessions = "1 session is" if num_sessions == 1 else f"{num_sessions} sessions are"
        raise Conflict(
            f"{sessions} pinned to the version '{version}'. They stay on it until they have been idle for a while.",
            code="version_pinned",
        )


def check_finished(deployment: Deployment, num_turns: int) -> None:
    """Raises ``Conflict`` while accepted turns of the deployment have not ended."""
    if num_turns:
        turns = "1 turn has" if num_turns == 1 else f"{num_turns} turns have"
        raise Conflict(
            f"{turns} not ended in the deployment '{deployment.name}', and would never be answered. Wait for them.",
            code="turns_unfinished",
        )


def check_owner(adapter: Adapter, tenant: str) -> None:
    """Raises ``Conflict`` when the adapter is another tenant's."""
    if adapter.tenant != tenant:
        whose = f"the tenant '{adapter.tenant}'" if adapter.tenant else "everybody"
        raise Conflict(
            f"The adapter '{adapter.id}' is for {whose}; remove it first, or choose another name.",
            code="adapter_exists",
            param="name",
        )


def check_revision(record: Record, what: str, revision: int | None) -> None:
    """Raises ``Conflict`` when the record has changed since the caller read it; None compares nothing."""
    if revision is not None and revision != record.revision:
        raise Conflict(
            f"The {what} has changed meanwhile: its revision is {record.revision}, and the change was made from "
            f"{revision}. Read it again.",
            code="revision_mismatch",
            param="revision",
        )


def _check_new_version(snapshot: Snapshot, version: Version) -> None:
    check_id(version.label, param="label")
    model_of(snapshot, version.model)
    _check_free(version.id, snapshot.versions, "version")
    for name in ("source", "digest", "text"):
        _check_text(name, getattr(version, name))
    for name in ("source_revision", "kernel"):
        _check_text(name, getattr(version, name), needed=False)
    _check_range("max_model_len", version.max_model_len, 1, _MOST)
    _check_range("settings.max_model_len", version.settings.max_model_len, 0, _MOST)
    for name in ("kind", "dtype"):
        _check_text(f"settings.{name}", getattr(version.settings, name), needed=False)
    for name, text in version.settings.more:
        _check_text("settings.more", name)
        _check_text("settings.more", text, needed=False)
    if version.settings.draft:
        version_of(snapshot, version.settings.draft)
    _check_advice(version)
    _check_fingerprints(snapshot, version)


def _check_advice(version: Version) -> None:
    advice = version.advice
    _check_range("advice.temperature", advice.temperature, 0, 2)
    _check_range("advice.top_p", advice.top_p, 0, 1)
    _check_range("advice.top_k", advice.top_k, 0, _MOST)
    _check_range("advice.repetition_penalty", advice.repetition_penalty, 0.01, 100)


def _check_fingerprints(snapshot: Snapshot, version: Version) -> None:
    if len(version.fingerprints) > MAX_FINGERPRINTS:
        raise InvalidInput(f"'fingerprints' may have at most {MAX_FINGERPRINTS}.", param="fingerprints")
    known = {mark: each.id for each in snapshot.versions.values() for mark in each.fingerprints}
    for mark in version.fingerprints:
        _check_text("fingerprints", mark)
        if mark in known:
            raise Conflict(f"The fingerprint '{mark}' is the version '{known[mark]}''s.", code="fingerprint_in_use")


def _check_deployment(snapshot: Snapshot, deployment: Deployment) -> None:
    model_of(snapshot, deployment.model)
    for member in deployment.members:
        if version_of(snapshot, member.version).model != deployment.model:
            raise InvalidInput(f"'{member.version}' is no version of '{deployment.model}'.", param="version")
    _check_range("min_replicas", deployment.min_replicas, 0, MAX_REPLICAS)
    _check_range("max_replicas", deployment.max_replicas, max(1, deployment.min_replicas), MAX_REPLICAS)
    for name in ("memory_bytes", "devices", "idle_s", "patience_s", "cold_patience_s"):
        _check_range(name, getattr(deployment, name), 0, _MOST)
    _check_range("num_lanes", deployment.num_lanes, 1, MAX_LANES)
    check_no_key(deployment.pool, param="pool")
    if not is_pool(deployment.pool):
        raise InvalidInput(
            "'pool' must have 1 to 40 small letters, digits, dashes or underscores inside, or be empty.", param="pool"
        )
    check_scaling(deployment)
    _check_fallbacks(snapshot, deployment)


def _check_fallbacks(snapshot: Snapshot, deployment: Deployment) -> None:
    names = deployment.fallbacks
    if len(names) > MAX_FALLBACKS or len(set(names)) < len(names) or deployment.name in names:
        raise InvalidInput(
            f"'fallbacks' must be at most {MAX_FALLBACKS} other deployments, each once.", param="fallbacks"
        )
    for name in names:
        deployment_of(snapshot, name, param="fallbacks")


def _check_price(snapshot: Snapshot, price: Price) -> None:
    model_of(snapshot, price.model)
    if price.version and version_of(snapshot, price.version).model != price.model:
        raise InvalidInput(f"'{price.version}' is no version of '{price.model}'.", param="version")
    for name in ("prompt", "cached", "output", "inputs"):
        _check_range(name, getattr(price, name), 0, 1e9)
    _check_range("since", price.since, 0, _LAST_SECOND)
    if not (len(price.currency) == 3 and price.currency.isascii() and price.currency.isupper()):
        raise InvalidInput("'currency' must be three capital letters, such as USD.", param="currency")


def _check_adapter(adapter: Adapter) -> None:
    check_no_key(adapter.model, param="model")
    if not is_served_name(adapter.model):
        raise InvalidInput(f"The model's name must have {SERVED_RULE}.", param="model")
    check_id(adapter.label, param="name")
    if adapter.label == "latest":
        raise InvalidInput(
            "No adapter may be called 'latest': clients of Ollama's API mean the model by it.", param="name"
        )
    if adapter.tenant:
        check_id(adapter.tenant, param="tenant")
    for each in adapter.files:
        _check_text("source", each.source)
        _check_text("digest", each.digest)
        _check_text("source_revision", each.source_revision, needed=False)


def _check_runs_adapters(snapshot: Snapshot, adapter: Adapter) -> None:
    """Raises ``InvalidInput`` where no version of the adapter's model could run it, by its own settings."""
    versions = [each for each in snapshot.versions.values() if each.model == adapter.model]
    obstacles = [_adapter_obstacle(each.settings) for each in versions]
    if obstacles and all(obstacles):
        raise InvalidInput(
            f"No version of '{adapter.model}' runs LoRA adapters: '{versions[0].id}' has {obstacles[0]}. Merge the "
            "adapter into its model, or register a version without that setting.",
            param="model",
        )


def _adapter_obstacle(settings: EngineSettings) -> str:
    """The setting with which an engine runs no adapters; empty if there is none."""
    more = dict(settings.more)
    if settings.kind == "vllm":
        return "engine = vllm"
    if settings.dtype == "fp8":
        return "dtype = fp8"
    if more.get("tensor_parallel", "1") != "1":
        return f"tensor_parallel = {more['tensor_parallel']}"
    return "adapter_slots = 0" if more.get("adapter_slots") == "0" else ""


def _check_free_time(snapshot: Snapshot, price: Price) -> None:
    same = (price.model, price.version, price.since)
    if any((each.model, each.version, each.since) == same for each in snapshot.prices):
        raise Conflict(
            f"'{price.version or price.model}' has a price from that time on; a price cannot be changed, only followed "
            "by another one.",
            code="price_exists",
        )


def _check_free(name: str, taken: Iterable[str], what: str) -> None:
    if name in taken:
        raise Conflict(f"There is {'an' if what[0] == 'a' else 'a'} {what} '{name}' already.", code=f"{what}_exists")


def _check_not_shadowed(name: str, taken: Iterable[str], whose: str) -> None:
    if name in taken:
        raise Conflict(f"{whose} has the name '{name}'; a name means one of them.", code="name_taken", param="id")


def _check_none(names: Sequence[str], sentence: str, code: str) -> None:
    if names:
        few = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        raise Conflict(f"{sentence}: {few}.", code=code)


def _check_text(param: str, text: str, *, needed: bool = True) -> None:
    check_no_key(text, param=param)
    if len(text) > _MAX_TEXT or not text.isprintable() or (needed and not text):
        least = 1 if needed else 0
        raise InvalidInput(f"'{param}' must be text of {least} to {_MAX_TEXT} printable characters.", param=param)


def _check_range(param: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        most = f"{high:.0f}" if high > MAX_REPLICAS else f"{high:g}"
        raise InvalidInput(f"'{param}' must be at least {low:g} and at most {most}.", param=param)
