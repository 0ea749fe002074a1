"""Has every application of a test process, and of what is forked from it, read its routes' parameters once together.

FastAPI reads the signature of each route anew for each application that includes it, at its first request: 60 ms and
more for those of Axon's gateway, of which a process has one. Tests make an application for each test, and a server for
each file. What is read is the same whenever the route and what it is included with are.
"""

from collections.abc import Hashable
from typing import Any

from fastapi import FastAPI, routing

_EffectiveRoute = routing._EffectiveRouteContext
_read: dict[Hashable, Any] = {}
_read_cold = _EffectiveRoute.from_api_route


def share_routes() -> None:
    """From here on."""
    _EffectiveRoute.from_api_route = staticmethod(_from_api_route)  # type: ignore[method-assign]


def prepare(app: FastAPI) -> None:
    """Reads the routes of an application now."""
    for route in app.router.routes:
        if isinstance(route, routing._IncludedRouter):
            route.effective_candidates()


def _from_api_route(*, original_route: routing.APIRoute, include_context: Any) -> Any:
    key = _key(original_route, include_context)
    if key is None:
        return _read_cold(original_route=original_route, include_context=include_context)
    if key not in _read:
        read = _read_cold(original_route=original_route, include_context=include_context)
        _read[key] = (read, original_route, include_context)  # which are kept, as their ids stand for them
    return _read[key][0]


def _key(route: routing.APIRoute, included: Any) -> Hashable | None:
    """All that what is read depends on; None where that is more than Axon's gateway ever asks for."""
    if (
        included.responses
        or included.callbacks
        or getattr(included.dependency_overrides_provider, "dependency_overrides", None)
    ):
        return None
    defaults = (included.default_response_class, included.generate_unique_id_function, included.strict_content_type)
    return (
        id(route),
        id(included.included_router),
        included.prefix,
        tuple(included.tags),
        tuple(included.dependencies),
        included.deprecated,
        included.include_in_schema,
        *(getattr(each, "value", each) for each in defaults),
    )
