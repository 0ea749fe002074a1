"""Measures the calls of a service: their seconds, their failures, and whether the last one succeeded."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from axon.errors import DependencyDown
from axon.runtime.clock import Clock
from axon.telemetry.declared.services import ServiceMetrics

T = TypeVar("T")


class Dependency:
    """One service, as this process sees it."""

    def __init__(self, name: str, metrics: ServiceMetrics, clock: Clock) -> None:
        self._name, self._metrics, self._clock = name, metrics, clock
        self._up = metrics.up.labels(name)
        self._is_up = True
        self._up.set(1)

    def measured(self, port: T, prefix: str = "") -> T:
        """The same port, with the calls of its coroutines measured; ``prefix`` stands before their names."""
        return cast("T", _Measured(port, self, prefix))

    def call(self, function: Callable[..., Awaitable[Any]], operation: str) -> Callable[..., Awaitable[Any]]:
        """The function, measured under the operation's name."""
        seconds = self._metrics.operation.labels(self._name, operation)
        monotonic = self._clock.monotonic

        async def called(*args: Any, **kwargs: Any) -> Any:
            began = monotonic()
            try:
                result = await function(*args, **kwargs)
            except DependencyDown:
                self._failed(operation)
                raise
            seconds.observe(monotonic() - began)
            if not self._is_up:
                self._is_up = True
                self._up.set(1)
            return result

        return called

    def _failed(self, operation: str) -> None:
        self._is_up = False
        self._up.set(0)
        self._metrics.errors.labels(self._name, operation).inc()


class _Measured:
    """A port whose coroutines are measured; everything else is the port's own."""

    def __init__(self, port: object, dependency: Dependency, prefix: str) -> None:
        self._port, self._dependency, self._prefix = port, dependency, prefix

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._port, name)
        if inspect.iscoroutinefunction(value):
            value = self._dependency.call(value, self._prefix + name)
        if inspect.isroutine(value):
            setattr(self, name, value)  # looked up once
        return value
