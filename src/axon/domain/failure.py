"""Failure codes of a turn, as workers and control record them. Knows no API: the gateway maps them to its errors."""

from enum import StrEnum


class Failure(StrEnum):
    """The code of a failed turn. A later release may write other codes, so a stored code is read as a plain string."""

    CONTEXT_TOO_LONG = "context_length_exceeded"
    KV_SHARE_TOO_SMALL = "kv_share_exceeded"
    PROMPT_LOGPROBS_UNSUPPORTED = "prompt_logprobs_unsupported"
    """The engine cannot compute log probabilities of a prompt on this device; written by earlier releases alone."""
    INVALID = "invalid_value"
    ADAPTER_UNUSABLE = "adapter_unusable"
    """The LoRA adapter that it names cannot be run by the engine."""
    ADAPTER_UNAVAILABLE = "adapter_unavailable"
    """The files of the LoRA adapter that it names could not be fetched, or are not those that were registered."""
    ENGINE_CRASH = "worker_crash"
    """The engine crashed repeatedly on this turn."""
    VERSION_GONE = "version_gone"
    DEPLOYMENT_GONE = "deployment_gone"
    RESTORED = "store_restored"
    """The store was restored from a backup that did not know how the turn ended; its state is ``cancelled``."""
