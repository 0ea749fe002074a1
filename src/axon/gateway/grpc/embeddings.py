"""Embed of ``axon.v1.Axon``: a vector for each input. Knows no queue and no engine."""

import asyncio
from functools import partial

from axon.errors import InvalidInput
from axon.gateway.grpc.asks import embedding_body, in_our_words
from axon.gateway.grpc.call import GrpcCall
from axon.gateway.openai.encoders.embedded import Embedded, embedded
from axon.gateway.openai.encoders.embedding_requests import EmbeddingRequest
from axon.gateway.openai.encoders.vectors import cut
from axon.gateway.turn.asking import Api
from axon.gateway.vector_directives import EMBEDDINGS
from axon.v1 import axon_pb2 as pb

_EMBED = Api("grpc-embed", "embd-")
_VALUES_TAG = bytes([pb.Vector.VALUES_FIELD_NUMBER << 3 | 2])
"""What comes before a packed list of a vector's values on the wire."""


async def embed(call: GrpcCall) -> None:
    """Answers with the vectors of all inputs. They are not kept after that."""
    asked = await call.read(pb.EmbedRequest)
    call.check_takes()
    body = await call.in_turn(partial(embedding_body, asked))
    try:
        ask = await call.gateway.bodies.parse(EmbeddingRequest, body, EMBEDDINGS.refused, EMBEDDINGS.notes)
        ask.check()
        found = await embedded(call.request, body, _EMBED, ask)
    except InvalidInput as error:
        raise in_our_words(error) from None
    answer = await asyncio.to_thread(response_of, ask.model, found, size=ask.size(found.embeds))
    await call.respond(answer, stream_id=found.id)


def response_of(model: str, found: Embedded, *, size: int) -> pb.EmbedResponse:
    """Returns the vectors as a message."""
    usage = pb.Usage(prompt_tokens=found.num_tokens)
    answer = pb.EmbedResponse(id=found.id, model=model, usage=usage)
    for vector in found.vectors:
        answer.vectors.append(vector_of(cut(vector, size)))
    return answer


def vector_of(numbers: bytes) -> pb.Vector:
    """Returns a vector of float32 numbers (little-endian), which is how protobuf writes a packed list of them."""
    return pb.Vector.FromString(_VALUES_TAG + _varint(len(numbers)) + numbers)


def _varint(number: int) -> bytes:
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])
