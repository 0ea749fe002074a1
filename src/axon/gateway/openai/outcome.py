"""Maps a failed turn's code to the error that OpenAI's clients expect, and the request field at fault. Pure."""

from axon.domain.failure import Failure
from axon.domain.log.chunk import Chunk
from axon.domain.reply import (
    ChatReply,
    CompletionReply,
    EmbeddingReply,
    MessagesReply,
    OtherReply,
    Reply,
    ResponseReply,
)
from axon.domain.turn import TurnState
from axon.errors import (
    AxonError,
    Cancelled,
    ContextTooLong,
    EngineError,
    Expired,
    ShareTooSmall,
    Unavailable,
    Unsupported,
)


def failure(last: Chunk, reply: Reply) -> AxonError | None:
    """Returns the error of a turn that failed; None if it completed. ``last`` is its terminal chunk."""
    message = last.message or None
    match last.terminal, last.code:
        case TurnState.FAILED, Failure.CONTEXT_TOO_LONG:
            return ContextTooLong(message, param=_prompt_param(reply))
        case TurnState.FAILED, Failure.KV_SHARE_TOO_SMALL:
            return ShareTooSmall(message, param=_prompt_param(reply))
        # The second code is the one that releases before 0.2 wrote into the log for the same failure.
        case TurnState.FAILED, Failure.PROMPT_LOGPROBS_UNSUPPORTED | Unsupported.code:
            return Unsupported(message, param="logprobs")
        case TurnState.FAILED, Failure.ADAPTER_UNUSABLE:
            return Unsupported(message, code=Failure.ADAPTER_UNUSABLE, param="model")
        case TurnState.FAILED, Failure.ADAPTER_UNAVAILABLE:
            return Unavailable(message, code=Failure.ADAPTER_UNAVAILABLE, param="model")
        case TurnState.FAILED, code:
            return EngineError(message, code=code or None)
        case TurnState.EXPIRED, _:
            return Expired(message)
        case TurnState.CANCELLED, _:
            return Cancelled(message)
    return None


def _prompt_param(reply: Reply) -> str | None:
    """Returns the name of the request's field that holds the prompt."""
    match reply:
        case ChatReply() | MessagesReply():
            return "messages"
        case CompletionReply():
            return "prompt"
        case ResponseReply() | EmbeddingReply():
            return "input"
        case OtherReply():
            return None
