"""What Redis's failures mean to the rest of Axon. No driver's error passes this edge."""

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
"""What the driver raises: five trees without a common root. A passed deadline is an ``OSError``."""

_MOVING = (ConnectionError, TimeoutError, ClusterError, ReadOnlyError, RedisClusterException, OSError)


def may_have_moved(error: Exception) -> bool:
    """Whether another node may hold by now what this one was asked for."""
    return isinstance(error, _MOVING)


def translate(error: Exception) -> DependencyDown:
    """The failure in our words. The driver's stay in the cause, unless they could quote what was sent."""
    if isinstance(error, OutOfMemoryError):
        failure = DependencyDown("The live service has no room left.", code="live_full")
    else:
        failure = DependencyDown(f"The live service does not answer ({type(error).__name__}).")
    failure.__cause__ = None if isinstance(error, RedisClusterException) else error
    return failure
