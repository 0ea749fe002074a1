"""Explains why a service's certificate is not taken: another name, an unknown CA, too old. Knows no service."""

import re
import ssl
from collections.abc import Sequence

_OTHER_NAME = frozenset({62, 64})
"""OpenSSL's codes of a certificate that is for another host name or IP address."""
_UNKNOWN_CA = frozenset({2, 18, 19, 20, 21})
_EXPIRED = 10
OTHER_NAME = "shows a certificate for another name: use a name that it is for, or give it a certificate for this one."
UNKNOWN_CA = "shows a certificate of an unknown CA: set service_ca_file to a file with its CA's certificate."
EXPIRED = "shows a certificate that has expired: renew it."
UNSAID = (
    "shows a certificate that is not taken, and the client library does not say why: see whether its CA is in "
    "service_ca_file, and whether today is within its dates."
)
_WORDS_OF_UNKNOWN_CA = ("issuer certificate", "self-signed", "self signed", "unable to verify the first certificate")


def recognise_certificate(causes: Sequence[BaseException]) -> str:
    """The predicate for a certificate that is not to be trusted; empty for any other failure."""
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            if cause.verify_code in _OTHER_NAME:
                return OTHER_NAME
            if cause.verify_code in _UNKNOWN_CA:
                return UNKNOWN_CA
            if cause.verify_code == _EXPIRED:
                return EXPIRED
            return _quoted(cause.verify_message)
    return ""


def recognise_words(text: str) -> str:
    """The same for a client library that says in words what it knows, and often that is only that it failed."""
    if "does not match host name" in text:
        return OTHER_NAME
    failed = re.search(r"certificate verify failed(?::[ \t]*([^\n]+))?", text)
    if failed is None:
        return ""
    reason = (failed[1] or "").strip().rstrip(".")
    if any(words in reason for words in _WORDS_OF_UNKNOWN_CA):
        return UNKNOWN_CA
    if "has expired" in reason:
        return EXPIRED
    return _quoted(reason) if reason else UNSAID


def _quoted(reason: str) -> str:
    return f"shows a certificate that is not taken: {reason}."
