"""One table of all gRPC methods: what serves each, and the scopes that a key needs for it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from axon.domain.tenants.key import Scope
from axon.gateway.grpc.call import GrpcCall
from axon.gateway.grpc.embeddings import embed
from axon.gateway.grpc.health import Health
from axon.gateway.grpc.models import list_models, model_infer, model_metadata, model_ready, server_metadata
from axon.gateway.grpc.reflection import Reflection
from axon.gateway.grpc.turns import ASKS, cancel, generate

AXON = "axon.v1.Axon"
INFERENCE = "inference.GRPCInferenceService"
HEALTH = "grpc.health.v1.Health"
REFLECTIONS = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")
SERVICES = frozenset({AXON, INFERENCE, HEALTH, *REFLECTIONS})
"""Services that reflection lists."""
_ANSWERS = frozenset({Scope.INFERENCE, Scope.READ})
_ANY = frozenset(Scope)
_OPEN: frozenset[Scope] = frozenset()


@dataclass(frozen=True, slots=True)
class Method:
    """One method of a service."""

    serve: Callable[[GrpcCall], Awaitable[None]]
    needed: frozenset[Scope]
    """Scopes of which a key needs at least one; an empty set means that the method needs no key."""


def make_methods() -> Mapping[str, Method]:
    """Returns all methods by their paths. A path that is not here is answered with UNIMPLEMENTED.

    To begin a turn by Generate, a key needs the scope ``inference``; to go on with one, ``read`` is enough.
    """
    health, reflection = Health(SERVICES), Reflection(sorted(SERVICES))
    return {
        f"/{AXON}/Generate": Method(generate, _ANSWERS),
        f"/{AXON}/Embed": Method(embed, ASKS),
        f"/{AXON}/Cancel": Method(cancel, ASKS),
        f"/{AXON}/ListModels": Method(list_models, _ANSWERS),
        f"/{INFERENCE}/ServerLive": Method(health.live, _OPEN),
        f"/{INFERENCE}/ServerReady": Method(health.ready, _OPEN),
        f"/{INFERENCE}/ModelReady": Method(model_ready, _ANSWERS),
        f"/{INFERENCE}/ServerMetadata": Method(server_metadata, _ANY),
        f"/{INFERENCE}/ModelMetadata": Method(model_metadata, _ANSWERS),
        f"/{INFERENCE}/ModelInfer": Method(model_infer, ASKS),
        f"/{HEALTH}/Check": Method(health.check, _OPEN),
        f"/{HEALTH}/List": Method(health.list_all, _OPEN),
        f"/{HEALTH}/Watch": Method(health.watch, _OPEN),
        **{f"/{each}/ServerReflectionInfo": Method(reflection.info, _ANY) for each in REFLECTIONS},
    }
