"""A tenant's conversations in a list, and one of them with its branches: what a chat page asks for."""

from typing import Any

import httpx

from tests.journeys.server import Server
from tests.journeys.test_responses import GREEDY


def made(api: httpx.Client, title: str) -> str:
    answer = api.post("/v1/conversations", json={"metadata": {"title": title}})
    return str(answer.raise_for_status().json()["id"])


def asked(api: httpx.Client, text: str, headers: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    answer = api.post("/v1/responses", json={**GREEDY, "input": text, **more}, headers=headers)
    return dict(answer.raise_for_status().json())


def told(api: httpx.Client, conversation: str, **asked: Any) -> list[dict[str, Any]]:
    answer = api.get(f"/v1/conversations/{conversation}/responses", params={"limit": 100, **asked})
    return list(answer.raise_for_status().json()["data"])


def test_conversations_are_listed_page_by_page_and_found_by_their_title(echo: Server) -> None:
    with echo.client() as api:
        ids = [made(api, f"Walk number {number} to the Sea") for number in range(5)]
        first = api.get("/v1/conversations", params={"limit": 2, "title": "sea"}).json()
        assert [each["id"] for each in first["data"]] == [ids[4], ids[3]]
        assert first["has_more"]
        rest = api.get("/v1/conversations", params={"limit": 3, "title": "sea", "after": first["last_id"]}).json()
        assert [each["metadata"]["title"] for each in rest["data"]] == [
            f"Walk number {number} to the Sea" for number in (2, 1, 0)
        ]
        assert not rest["has_more"]
        assert api.get("/v1/conversations", params={"after": "conv_nobody"}).status_code == 400
        assert api.get("/v1/conversations", params={"title": "x" * 201}).status_code == 400


def test_a_conversation_is_told_with_its_branches(echo: Server) -> None:
    with echo.client() as api:
        talk = made(api, "branches")
        one = asked(api, "one", conversation=talk)
        two = asked(api, "two", conversation=talk)
        other = asked(api, "two, said otherwise", previous_response_id=one["id"])
        later = asked(api, "three", previous_response_id=other["id"])
        start = asked(api, "one, said otherwise", headers={"x-axon-branch-of": talk})
        assert start["output"][0]["content"][0]["text"] == "user: one, said otherwise\nassistant:"
        assert (start["previous_response_id"], start["axon"]["branch_of"]) == (None, talk)
        on = asked(api, "and on", previous_response_id=start["id"])
        assert on["output"][0]["content"][0]["text"].startswith("user: one, said otherwise\nassistant: ")
        found = told(api, talk)
        assert [each["id"] for each in found] == [each["id"] for each in (one, two, other, later, start, on)]
        assert [each["input"][0]["content"][0]["text"] for each in found][2] == "two, said otherwise"
        assert [each["id"] for each in told(api, talk, after=start["id"])] == [on["id"]]
        assert len(api.get(f"/v1/conversations/{talk}/items").json()["data"]) == 4  # branches add nothing to it
        ledger = api.get(f"/v1/conversations/{talk}/responses", headers={"x-axon-ledger": "true"}).json()["data"][0]
        assert ledger["axon"]["ledger"]["billed_tokens"] > 0


def test_erasing_a_conversation_with_its_branches_leaves_nothing(echo: Server) -> None:
    with echo.client() as api:
        talk = made(api, "to be erased")
        one = asked(api, "one", conversation=talk)
        branch = asked(api, "otherwise", previous_response_id=one["id"])
        start = asked(api, "anew", headers={"x-axon-branch-of": talk})
        kept = asked(api, "elsewhere")
        api.delete(f"/v1/conversations/{talk}", params={"branches": "true"}).raise_for_status()
        for each in (one, branch, start):
            assert api.get(f"/v1/responses/{each['id']}").status_code == 404
        assert api.get(f"/v1/conversations/{talk}/responses").status_code == 404
        assert api.get("/v1/conversations", params={"title": "to be erased"}).json()["data"] == []
        assert api.get(f"/v1/responses/{kept['id']}").status_code == 200


def test_a_branch_from_the_start_is_of_ones_own_conversation_alone(echo: Server) -> None:
    with echo.client() as api:
        unknown = api.post(
            "/v1/responses",
            json={**GREEDY, "input": "x"},
            headers={"x-axon-branch-of": "conv_00000000000000000000000000"},
        )
        assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "conversation_not_found")
        talk = made(api, "mine")
        both = api.post(
            "/v1/responses", json={**GREEDY, "input": "x", "conversation": talk}, headers={"x-axon-branch-of": talk}
        )
        assert (both.status_code, both.json()["error"]["code"]) == (400, "mutually_exclusive_parameters")
