"""Translates errors of the Redis driver to ``DependencyDown``, so that none leaves the adapter."""

from redis.exceptions import (
    ChildDeadlockedError,
    ClusterError,
    ConnectionError,
    IncorrectPolicyType,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    TimeoutError,
)

from axon.errors import DependencyDown

DRIVER_ERRORS = (RedisError, RedisClusterException, ChildDeadlockedError, IncorrectPolicyType, OSError)
"""Errors of the driver: five class trees without a common root. An expired deadline is an ``OSError``."""

_MOVING = (ConnectionError, TimeoutError, ClusterError, ReadOnlyError, RedisClusterException, OSError)


def may_have_moved(error: Exception) -> bool:
    """Whether the failure may mean that the keys have moved to another node."""
    return isinstance(error, _MOVING)


def translate(error: Exception) -> DependencyDown:
    """Translates a driver error. The original becomes the cause, unless its message may quote what was sent."""
    if isinstance(error, OutOfMemoryError):
        failure = DependencyDown("The live service has no room left.", code="live_full")
    else:
        failure = DependencyDown(f"The live service does not answer ({type(error).__name__}).")
    failure.__cause__ = None if isinstance(error, RedisClusterException) else error
    return failure
