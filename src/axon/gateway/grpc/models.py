"""What models there are: ListModels of ``axon.v1.Axon``, and the metadata of the Open Inference Protocol."""

from axon.domain.registry.model import Capability
from axon.errors import Unavailable
from axon.gateway.grpc.call import GrpcCall
from axon.gateway.http.errors import MethodNotAllowed
from axon.gateway.offers.offer import Listed
from axon.gateway.offers.wait import State
from axon.gateway.turn.context import find_model, identity_of
from axon.oip import inference_pb2 as oip
from axon.v1 import axon_pb2 as pb

_Tensor = oip.ModelMetadataResponse.TensorMetadata
_NO_TENSORS = (
    "ModelInfer is not implemented: a language model is not asked with tensors. Use axon.v1.Axon/Generate or "
    "axon.v1.Axon/Embed, which reflection describes, or the HTTP API."
)


async def list_models(call: GrpcCall) -> None:
    """Answers with the models that the caller may use."""
    await call.read(pb.ListModelsRequest)
    listed = call.gateway.offers.listed(identity_of(call.request).terms.allows)
    await call.respond(pb.ListModelsResponse(models=map(_model, listed)))


async def model_ready(call: GrpcCall) -> None:
    """Answers whether a model can answer at once; raises ``NotFound`` for one that the caller may not use."""
    asked = await call.read(oip.ModelReadyRequest)
    try:
        is_ready = _find(call, asked.name, asked.version).state is State.READY
    except Unavailable:
        is_ready = False
    await call.respond(oip.ModelReadyResponse(ready=is_ready))


async def model_metadata(call: GrpcCall) -> None:
    """Answers with what a model takes and gives, in the protocol's words: texts are tensors of bytes."""
    asked = await call.read(oip.ModelMetadataRequest)
    listed = _find(call, asked.name, asked.version)
    await call.respond(metadata_of(listed))


async def server_metadata(call: GrpcCall) -> None:
    """Answers with the server's name and release."""
    await call.read(oip.ServerMetadataRequest)
    await call.respond(oip.ServerMetadataResponse(name="axon", version=call.version, extensions=["axon.v1"]))


async def model_infer(call: GrpcCall) -> None:
    """Refuses, whatever is asked; the message is not read."""
    raise MethodNotAllowed(_NO_TENSORS, code="not_implemented")


def metadata_of(listed: Listed) -> oip.ModelMetadataResponse:
    """Returns a model's metadata."""
    served = listed.served
    found = oip.ModelMetadataResponse(name=served.name, versions=[listed.label or served.version], platform="axon")
    if served.embeds is not None:
        found.inputs.append(_Tensor(name="texts", datatype="BYTES", shape=[-1]))
        found.outputs.append(_Tensor(name="vectors", datatype="FP32", shape=[-1, served.embeds.dimensions]))
        return found
    asks_chat = Capability.CHAT in listed.capabilities
    found.inputs.append(_Tensor(name="messages" if asks_chat else "prompt", datatype="BYTES", shape=[-1]))
    found.outputs.append(_Tensor(name="text", datatype="BYTES", shape=[-1]))
    return found


def _find(call: GrpcCall, name: str, version: str) -> Listed:
    """Returns a model that the caller may use, as it is listed."""
    return find_model(call.request, f"{name}@{version}" if version else name).offer.listed()


def _model(listed: Listed) -> pb.Model:
    served = listed.served
    return pb.Model(
        id=served.name,
        created=served.created,
        owned_by=served.owned_by,
        max_model_len=served.max_model_len,
        version=listed.label or served.version,
        state=listed.state.value,
        capabilities=[each.value for each in listed.capabilities],
    )
