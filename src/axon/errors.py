"""Every error Axon raises on purpose. Knows no HTTP: the gateway maps a kind to a status.

    AxonError
    ├── InvalidInput              the caller must change the request
    │   ├── ContextTooLong        found by the engine
    │   │   ├── PromptTooLong
    │   │   └── AnswerTooLong
    │   ├── NotCompleted          an earlier turn that nothing can go on from
    │   ├── ShareTooSmall         the tenant's share of an engine's KV blocks
    │   └── Unsupported
    ├── Unauthenticated           no key, or one we do not know
    │   └── KeyRevoked            while its answer was being sent
    ├── Forbidden                 a key we know, without the right
    ├── NotFound                  unknown, another tenant's or gone: the caller cannot tell which
    ├── TooLarge
    ├── Conflict                  the same idempotency key with another body
    │   ├── Busy                  one turn at a time; comes with a time to retry after
    │   │   └── AlreadyProfiled   one profile of a process at a time
    │   └── StaleTerm             an order of a leader that has been replaced
    ├── LimitReached              the tenant's own limit; comes with a time to retry after
    │   ├── BudgetSpent           its tokens of the day or month are used up; no retry helps
    │   └── StorageFull           its quota of stored bytes or objects is used up; no retry helps
    ├── Unavailable               the fleet cannot take it now; comes with a time to retry after
    │   ├── Overloaded
    │   ├── Draining
    │   └── DependencyDown
    │       └── ServiceRefuses    it answers, and not to these settings; raised at start only
    ├── Expired                   the turn's deadline passed
    ├── Cancelled                 somebody asked for the turn's end
    ├── StreamDiverged            a stream was regenerated differently from what the reader has
    ├── EngineError               the engine refused or failed a sequence
    │   └── EngineDied
    ├── FetchFailed               a model's files cannot be had; the message says what to do
    │   └── FetchInterrupted      the network or the source failed; a retry may help
    └── Misconfigured             settings that cannot work; raised at start only
        └── UnknownModel          a model that is whole, and that Axon's own engine does not compute

The class docstring is the default message. ``kind`` names the class of answer, ``code`` the exact cause,
``retryable`` says whether the same call can succeed later.
"""

from functools import cache
from typing import ClassVar


class AxonError(Exception):
    """Something went wrong inside Axon."""

    kind: ClassVar[str] = "internal"
    code: str = "internal_error"
    retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str | None = None,
        *,
        code: str | None = None,
        param: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        self.message = message or (type(self).__doc__ or "").strip()
        self.code = code or type(self).code
        self.param = param
        self.retry_after_s = retry_after_s
        super().__init__(self.message)


class InvalidInput(AxonError):
    """The request is not valid."""

    kind = "invalid"
    code = "invalid_value"


class ContextTooLong(InvalidInput):
    """The prompt does not fit into the model's context."""

    code = "context_length_exceeded"


class PromptTooLong(ContextTooLong):
    """The prompt leaves no room for an answer in the model's context."""

    def __init__(self, *, max_model_len: int, num_tokens: int, at_least: bool = False) -> None:
        """``at_least``: the prompt was not tokenised, because no tokens of that text could be fewer."""
        self.max_model_len, self.num_tokens, self.at_least = max_model_len, num_tokens, at_least
        super().__init__(f"The prompt has {num_tokens} tokens or more; the model's context has {max_model_len}.")


class AnswerTooLong(ContextTooLong):
    """The prompt and the longest answer asked for do not fit into the model's context together."""

    def __init__(self, *, max_model_len: int, num_prompt: int, num_answer: int) -> None:
        self.max_model_len, self.num_prompt, self.num_answer = max_model_len, num_prompt, num_answer
        super().__init__(f"{num_prompt} + {num_answer} tokens do not fit; the model's context has {max_model_len}.")


class NotCompleted(InvalidInput):
    """The earlier turn did not complete; nothing can go on from it."""

    code = "turn_not_completed"


class ShareTooSmall(InvalidInput):
    """The prompt does not fit into the tenant's share of the KV memory."""

    code = "kv_share_exceeded"


class Unsupported(InvalidInput):
    """The request asks for something this server does not do yet."""

    code = "unsupported_parameter"


class Unauthenticated(AxonError):
    """Incorrect API key provided."""

    kind = "unauthenticated"
    code = "invalid_api_key"


class KeyRevoked(Unauthenticated):
    """This API key was revoked."""

    code = "key_revoked"


class Forbidden(AxonError):
    """This API key may not do that."""

    kind = "forbidden"
    code = "insufficient_permissions"


class NotFound(AxonError):
    """No such object."""

    kind = "not_found"
    code = "not_found"


class TooLarge(AxonError):
    """The request body is too large."""

    kind = "too_large"
    code = "request_too_large"


class Conflict(AxonError):
    """The request clashes with an earlier one."""

    kind = "conflict"
    code = "idempotency_key_reused"


class StaleTerm(Conflict):
    """The order comes from a leader that has been replaced meanwhile."""

    code = "stale_term"


class Busy(Conflict):
    """Another turn of this conversation is still running; try again soon."""

    code = "conversation_locked"
    retryable = True


class AlreadyProfiled(Busy):
    """A profile of this process is being recorded already; try again when it has ended."""

    code = "profile_running"


class LimitReached(AxonError):
    """A rate limit is reached."""

    kind = "limit"
    code = "rate_limit_exceeded"
    retryable = True


class BudgetSpent(LimitReached):
    """You have used your budget of tokens."""

    code = "insufficient_quota"
    retryable = False


class StorageFull(LimitReached):
    """You have stored as much as your quota allows; delete conversations or responses, or ask for a larger quota."""

    code = "storage_quota_exceeded"
    retryable = False


class Unavailable(AxonError):
    """The server cannot take the request now."""

    kind = "unavailable"
    code = "unavailable"
    retryable = True


class Overloaded(Unavailable):
    """The server is at its capacity; try again soon."""

    code = "overloaded"


class Draining(Unavailable):
    """The server is shutting down; try again soon."""

    code = "draining"


class DependencyDown(Unavailable):
    """A service Axon depends on does not answer."""

    code = "dependency_unavailable"


class ServiceRefuses(DependencyDown):
    """A service Axon depends on refuses these settings."""

    retryable = False


class Expired(AxonError):
    """The request's deadline passed before it was answered."""

    kind = "expired"
    code = "deadline_exceeded"


class Cancelled(AxonError):
    """The request was cancelled."""

    kind = "conflict"
    code = "cancelled"


class StreamDiverged(AxonError):
    """The stream was regenerated differently after a failure; read the whole answer again."""

    kind = "internal"
    code = "stream_diverged"


class EngineError(AxonError):
    """The engine failed this sequence."""

    code = "engine_error"


class EngineDied(EngineError):
    """The engine process ended while it ran this sequence."""

    code = "worker_crash"


class FetchFailed(AxonError):
    """The model's files cannot be fetched."""

    code = "fetch_failed"


class FetchInterrupted(FetchFailed):
    """The source of the model's files does not answer."""

    code = "source_unreachable"
    retryable = True


class Misconfigured(AxonError):
    """The settings cannot work."""

    kind = "misconfigured"
    code = "misconfigured"


class UnknownModel(Misconfigured):
    """Axon's own engine does not compute this model; another one may."""


def rebuilt(
    kind: str, message: str, *, code: str, param: str | None = None, retry_after_s: float | None = None
) -> AxonError:
    """An error that another process of this server raised, by the name of its class; an unknown one is an
    ``AxonError``."""
    return _plain_kinds().get(kind, AxonError)(message, code=code, param=param, retry_after_s=retry_after_s)


@cache
def _plain_kinds() -> dict[str, type[AxonError]]:
    """Every class that is made from a message alone, by its name."""
    found, unseen = {}, [AxonError]
    while unseen:
        kind = unseen.pop()
        unseen += kind.__subclasses__()
        if kind.__init__ is AxonError.__init__:
            found[kind.__name__] = kind
    return found
