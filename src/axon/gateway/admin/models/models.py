"""Routes of /v1/admin/models: the registry's models and their versions. Opens no file of a model."""

from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import Field
from starlette.requests import Request

from axon.domain.registry.model import Capability, Model
from axon.domain.registry.version import Advice, EngineSettings, Version, version_id
from axon.errors import InvalidInput
from axon.gateway.admin.bodies import AdminWire, actor_of, admin_of, note, read
from axon.gateway.admin.models.registry import Revision, asked_revision, needed_revision, page, removed
from axon.gateway.http.body import Many, at_most
from axon.gateway.http.paging import DEFAULT_LIMIT
from axon.gateway.http.schema import body_of_kind
from axon.registry.facts import facts_of
from axon.registry.rules import model_of, version_of

router = APIRouter(tags=["admin"], prefix="/v1/admin/models")

Word = Literal["chat", "tools", "reasoning", "embeddings"]
Capabilities = Annotated[Many[Word], Field(min_length=1, max_length=4)]


def _chat() -> list[Word]:
    return ["chat"]


class SettingsBody(AdminWire):
    """Settings of the engine that belong to a version, because another value gives other tokens."""

    kind: str = ""
    """The engine: empty for the server's own choice, ``echo`` for the one that repeats its prompt."""
    dtype: str = "auto"
    """The type of the numbers that it computes with."""
    max_model_len: int = 0
    """Context length in tokens; 0 for the model's own."""
    draft: str = ""
    """Id of the version that drafts for this one (speculative decoding); empty for none."""
    more: Annotated[dict[str, str], *at_most(64)] = Field(default_factory=dict)
    """Other settings of the engine by name, each with its value as text: ``{"max_sequences": "8"}``."""

    def settings(self) -> EngineSettings:
        """Returns them as a value."""
        said = self.model_dump(exclude={"more"})
        return EngineSettings(**said, more=tuple(sorted(self.more.items())))


class AdviceBody(AdminWire):
    """Sampling defaults, for requests that set none."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    repetition_penalty: float = 1.0


class NewVersion(AdminWire):
    """Body of POST /v1/admin/models/{id}/versions."""

    label: str
    """The version's name among those of its model, such as ``v2``. Its id is ``model@label``."""
    source: str
    """Where its files come from: a path, ``hf://org/name@revision`` or ``s3://bucket/prefix``."""
    source_revision: str = ""
    """The revision that the source had, where it has one."""
    digest: str
    """SHA-256 over the names, sizes and digests of all its files."""
    text: str
    """Fingerprint of tokenizer and template."""
    max_model_len: int
    """Context length in tokens that it is served with."""
    settings: SettingsBody = Field(default_factory=SettingsBody)
    advice: AdviceBody = Field(default_factory=AdviceBody)
    reasons: bool = False
    """Whether the model writes its reasoning before the answer."""
    fingerprints: Annotated[Many[str], Field(max_length=32)] = Field(default_factory=list)
    """Marks under which releases without a registry have served it."""

    def version(self, model: str) -> Version:
        """Returns the version of this model that the body describes."""
        said = self.model_dump(exclude={"settings", "advice", "fingerprints"})
        return Version(
            model=model,
            settings=self.settings.settings(),
            advice=Advice(**self.advice.model_dump()),
            fingerprints=tuple(self.fingerprints),
            created=0.0,
            **said,
        )


class NewModel(AdminWire):
    """Body of POST /v1/admin/models."""

    id: str
    """The model's name: 1 to 64 letters, digits, dots, dashes or underscores."""
    capabilities: Capabilities = Field(default_factory=_chat)
    """What it can do."""
    max_model_len: int = 0
    """Context length in tokens that its makers state; 0 if unknown."""
    licence: str = ""
    version: NewVersion | None = None
    """Its first version, if it is registered together with the model."""
    deploy: bool = False
    """Whether a deployment of the model's name is created, which serves the first version."""


class ModelChange(AdminWire):
    """Body of PATCH /v1/admin/models/{id}; fields that it does not have stay as they are."""

    revision: Revision | None = None
    """The revision of the model that the change was made from; or the header ``If-Match``."""
    capabilities: Capabilities | None = None
    max_model_len: int | None = None
    licence: str | None = None


@router.get("", summary="List registered models")
async def index(request: Request, after: str = "", limit: str = DEFAULT_LIMIT, order: str = "asc") -> dict[str, Any]:
    """Lists the registry's models page by page, by name. ``GET /v1/models`` lists what is served."""
    found = await admin_of(request).catalog.snapshot()
    return page(found.models.values(), after=after, limit=limit, order=order)


@router.post("", openapi_extra=body_of_kind(NewModel), summary="Add a model")
async def create(request: Request) -> dict[str, Any]:
    """Adds a model to the registry, with its first version and a deployment of it if the body says so: all or none."""
    ask = await read(NewModel, request)
    if ask.deploy and ask.version is None:
        raise InvalidInput("'deploy' needs a 'version' to deploy.", param="deploy")
    model = Model(
        name=ask.id,
        capabilities=_capabilities(ask.capabilities),
        max_model_len=ask.max_model_len,
        licence=ask.licence,
        created=0.0,
    )
    version = None if ask.version is None else ask.version.version(ask.id)
    made = await admin_of(request).catalog.add_model(model, version, deploys=ask.deploy, actor=actor_of(request))
    note(request, "admin.model_added", model=made.name, version=version.id if version else None)
    return facts_of(made)


@router.get("/{model_id}", summary="Retrieve a registered model")
async def show(request: Request, model_id: str) -> dict[str, Any]:
    """Returns a model."""
    return facts_of(model_of(await admin_of(request).catalog.snapshot(), model_id))


@router.patch("/{model_id}", openapi_extra=body_of_kind(ModelChange), summary="Change a model")
async def change(request: Request, model_id: str) -> dict[str, Any]:
    """Changes what is known about a model. 409 ``revision_mismatch`` if it has changed since the named revision."""
    ask = await read(ModelChange, request)
    said: dict[str, Any] = ask.model_dump(exclude={"revision"}, exclude_none=True)
    if ask.capabilities is not None:
        said["capabilities"] = _capabilities(ask.capabilities)
    revision = needed_revision(request, ask.revision)
    new = await admin_of(request).catalog.change_model(
        model_id, lambda old: replace(old, **said), revision=revision, actor=actor_of(request)
    )
    note(request, "admin.model_changed", model=new.name, fields=sorted(said))
    return facts_of(new)


@router.delete("/{model_id}", summary="Remove a model")
async def remove(request: Request, model_id: str) -> dict[str, Any]:
    """Removes a model that has no versions, together with its prices."""
    revision = asked_revision(request)
    await admin_of(request).catalog.remove_model(model_id, revision=revision, actor=actor_of(request))
    note(request, "admin.model_removed", model=model_id)
    return removed(model_id, "model")


@router.get("/{model_id}/versions", summary="List a model's versions")
async def versions(
    request: Request, model_id: str, after: str = "", limit: str = DEFAULT_LIMIT, order: str = "desc"
) -> dict[str, Any]:
    """Lists the versions of a model page by page, the newest first."""
    found = await admin_of(request).catalog.snapshot()
    model = model_of(found, model_id)
    own = [each for each in found.versions.values() if each.model == model.name]
    return page(sorted(own, key=lambda each: each.revision), after=after, limit=limit, order=order)


@router.post("/{model_id}/versions", openapi_extra=body_of_kind(NewVersion), summary="Register a version")
async def add_version(request: Request, model_id: str) -> dict[str, Any]:
    """Registers a version of a model from what is known about its files. It cannot be changed afterwards."""
    ask = await read(NewVersion, request)
    made = await admin_of(request).catalog.add_version(ask.version(model_id), actor=actor_of(request))
    note(request, "admin.version_added", version=made.id, digest=made.digest)
    return facts_of(made)


@router.get("/{model_id}/versions/{label}", summary="Retrieve a version")
async def show_version(request: Request, model_id: str, label: str) -> dict[str, Any]:
    """Returns a version."""
    return facts_of(version_of(await admin_of(request).catalog.snapshot(), version_id(model_id, label)))


@router.delete("/{model_id}/versions/{label}", summary="Remove a version")
async def remove_version(request: Request, model_id: str, label: str) -> dict[str, Any]:
    """Removes a version that no deployment has and no session is pinned to."""
    named = version_id(model_id, label)
    revision = asked_revision(request)
    await admin_of(request).catalog.remove_version(named, revision=revision, actor=actor_of(request))
    note(request, "admin.version_removed", version=named)
    return removed(named, "model.version")


def _capabilities(words: list[Word]) -> tuple[Capability, ...]:
    """Returns the capabilities of these names, each once, in the order of their declaration."""
    return tuple(each for each in Capability if each in words)
