"""Finds the turn of a stream by its id, whichever API it came by. Knows no route."""

from starlette.requests import Request

from axon.domain.reply import EmbeddingReply
from axon.domain.turn import Turn
from axon.errors import InvalidInput, NotFound
from axon.gateway.http.errors import Gone
from axon.gateway.openai import best_of
from axon.gateway.turn.context import find_turn


async def find_any(request: Request, turn_id: str, param: str = "stream_id") -> Turn:
    """Returns a turn of the caller's own tenant; raises the same ``NotFound`` for every other id. ``param`` names the
    request's field that has the id."""
    turn = await find_turn(request, turn_id)
    if turn is None:
        raise NotFound(f"No stream with id '{turn_id}'.", code="stream_not_found", param=param)
    return turn


async def find_stream(request: Request, turn_id: str, param: str = "stream_id") -> Turn:
    """Returns a turn whose tokens can be streamed; raises ``Gone`` if its text is deleted, ``InvalidInput`` if its
    answer is not streamed."""
    turn = await find_any(request, turn_id, param)
    if turn.job.purged:
        raise Gone()
    if isinstance(turn.job.reply, EmbeddingReply):
        raise InvalidInput("Embeddings are not streamed.", param=param)
    if best_of.is_chosen_from(turn.job):
        raise InvalidInput("An answer with 'best_of' is not streamed.", param=param)
    return turn
