import json

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from axon.gateway.app import _on_http_error, routes


@pytest.mark.parametrize(
    ("path", "methods"),
    [("/v1/streams/abc", "DELETE, GET"), ("/v1/chat/completions", "GET, POST"), ("/livez", "GET, HEAD")],
)
async def test_a_refused_method_is_answered_with_all_that_the_path_takes(path: str, methods: str) -> None:
    scope = {"type": "http", "method": "PUT", "path": path, "headers": [], "query_string": b"", "app": routes("1")}
    answer = await _on_http_error(Request(scope), HTTPException(405, headers={"Allow": "GET"}))
    assert (answer.status_code, answer.headers["allow"]) == (405, methods)
    assert json.loads(bytes(answer.body))["error"]["code"] == "method_not_allowed"
