"""Why a turn failed, as workers and control write it down. Knows no API's words: the gateway finds those."""

from enum import StrEnum


class Failure(StrEnum):
    """The code of a failed turn. A later release may write others, so what is read back is a plain string."""

    CONTEXT_TOO_LONG = "context_length_exceeded"
    KV_SHARE_TOO_SMALL = "kv_share_exceeded"
    PROMPT_LOGPROBS_UNSUPPORTED = "prompt_logprobs_unsupported"
    """The engine cannot compute log probabilities of a prompt on this device."""
    INVALID = "invalid_value"
    ENGINE_CRASH = "worker_crash"
    """The engine crashed on this turn again and again."""
    VERSION_GONE = "version_gone"
    DEPLOYMENT_GONE = "deployment_gone"
