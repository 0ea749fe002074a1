"""Explains why a service's certificate is not taken: another name, an unknown CA, too old. Knows no service."""

import ssl
from collections.abc import Sequence

_OTHER_NAME = frozenset({62, 64})
"""OpenSSL's codes of a certificate that is for another host name or IP address."""
_UNKNOWN_CA = frozenset({2, 18, 19, 20, 21})
_EXPIRED = 10
OTHER_NAME = "shows a certificate for another name: use a name that it is for, or give it a certificate for this one."
UNKNOWN_CA = "shows a certificate of an unknown CA: set service_ca_file to a file with its CA's certificate."


def recognise_certificate(causes: Sequence[BaseException]) -> str:
    """The predicate for a certificate that is not to be trusted; empty for any other failure."""
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            if cause.verify_code in _OTHER_NAME:
                return OTHER_NAME
            if cause.verify_code in _UNKNOWN_CA:
                return UNKNOWN_CA
            if cause.verify_code == _EXPIRED:
                return "shows a certificate that has expired: renew it."
            return f"shows a certificate that is not taken: {cause.verify_message}."
    return ""
