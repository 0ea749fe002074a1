"""Every module has a test file of its name in the mirrored folder, or stands here with where its behaviour is tested.

``src/axon/gateway/http/paging.py`` is tested by ``tests/gateway/http/test_paging.py``. To add a package, put its name
in ``PACKAGES`` and run this file: what it names needs a test, or a line below.
"""

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCE, TESTS = REPOSITORY / "src" / "axon", REPOSITORY / "tests"
PACKAGES = ("domain", "gateway", "registry", "weights")

ELSEWHERE = {
    "domain/tenants/account.py": "contracts/test_accounts.py",
    "domain/sizing/device.py": "domain/sizing/test_plan.py",
    "domain/census.py": "contracts/test_storage_store.py",
    "domain/session/conversation.py": "sessions/test_history.py",
    "domain/scaling/finite.py": "domain/scaling/test_decide.py",
    "domain/scaling/forecast.py": "domain/scaling/test_decide.py",
    "domain/scaling/history.py": "domain/scaling/test_decide.py",
    "domain/scaling/memory.py": "domain/scaling/test_decide.py",
    "domain/scaling/need.py": "domain/scaling/test_decide.py",
    "domain/scaling/signals.py": "domain/scaling/test_decide.py",
    "gateway/pages/rendering/allowed.py": "gateway/pages/rendering/test_markdown.py",
    "gateway/pages/rendering/answers.py": "gateway/pages/rendering/test_process.py",
    "gateway/pages/cookie.py": "gateway/pages/test_routes.py",
    "gateway/pages/parts.py": "gateway/pages/test_routes.py",
    "gateway/admin/bodies.py": "gateway/admin/test_admin.py",
    "gateway/admin/overviews.py": "gateway/admin/test_overview.py",
    "domain/fleet/backoff.py": "contracts/test_launcher.py",
    "domain/fleet/demand.py": "domain/fleet/test_desired.py",
    "domain/fleet/sight.py": "domain/fleet/test_reconcile.py",
    "domain/fleet/status.py": "gateway/admin/test_fleet.py",
    "gateway/admin/models/aliases.py": "gateway/admin/models/test_registry.py",
    "gateway/admin/changes.py": "gateway/admin/models/test_registry.py",
    "gateway/admin/models/deployments.py": "gateway/admin/models/test_registry.py",
    "gateway/admin/models/models.py": "gateway/admin/models/test_registry.py",
    "gateway/admin/models/prices.py": "gateway/admin/models/test_registry.py",
    "gateway/admin/models/scaling.py": "gateway/admin/models/test_registry.py",
    "gateway/directive.py": "gateway/test_directives.py",
    "gateway/health.py": "fleet/test_roles.py",
    "gateway/turn/body.py": "journeys/test_embeddings.py",
    "gateway/grpc/call.py": "journeys/test_grpc.py",
    "gateway/grpc/health.py": "journeys/test_grpc.py",
    "gateway/grpc/models.py": "journeys/test_grpc.py",
    "gateway/grpc/reflection.py": "journeys/test_grpc.py",
    "gateway/grpc/server.py": "security/test_grpc.py",
    "gateway/grpc/turns.py": "journeys/test_grpc.py",
    "gateway/openai/finding.py": "gateway/test_streams.py",
    "gateway/http/outages.py": "gateway/http/test_middleware.py",
    "gateway/http/connection/plain_head.py": "gateway/http/test_upgrades.py",
    "gateway/http/connection/http_protocol.py": "gateway/http/connection/test_server.py",
    "gateway/http/connection/lingering.py": "gateway/http/connection/test_server.py",
    "gateway/http/socket_exchange.py": "journeys/test_socket.py",
    "gateway/http/connection/write_timer.py": "gateway/http/connection/test_server.py",
    "gateway/ollama/routes.py": "journeys/test_ollama.py",
    "gateway/openai/stored.py": "journeys/test_stored_chats.py",
    "gateway/openai/stored_messages.py": "journeys/test_stored_chats.py",
    "gateway/responses/finding.py": "journeys/test_resumed_responses.py",
    "gateway/responses/socket.py": "journeys/test_socket.py",
    "gateway/responses/socket_request.py": "journeys/test_socket.py",
    "gateway/offers/starts.py": "gateway/offers/test_registered.py",
    "gateway/offers/wait.py": "gateway/offers/test_registered.py",
    "gateway/batches/calls.py": "gateway/batches/test_driver.py",
    "gateway/batches/endpoints.py": "journeys/test_batches.py",
    "gateway/batches/files.py": "journeys/test_batches.py",
    "gateway/batches/results.py": "gateway/batches/test_driver.py",
    "gateway/batches/room.py": "journeys/test_uploads.py",
    "gateway/batches/routes.py": "journeys/test_batches.py",
    "gateway/batches/driver_parts.py": "gateway/batches/test_driver.py",
    "gateway/batches/running.py": "gateway/batches/test_driver.py",
    "gateway/anthropic/answer.py": "journeys/test_messages.py",
    "gateway/anthropic/routes.py": "journeys/test_messages.py",
    "gateway/openai/answer.py": "journeys/test_chat.py",
    "gateway/openai/calls.py": "gateway/openai/test_shape.py",
    "gateway/openai/tools.py": "conformance/test_tools.py",
    "gateway/responses/tools.py": "conformance/test_tools.py",
    "gateway/openai/template_options.py": "gateway/openai/test_formats.py",
    "gateway/openai/chat.py": "journeys/test_chat.py",
    "gateway/openai/completions.py": "journeys/test_prompts.py",
    "gateway/openai/encoders/encoder_requests.py": "gateway/openai/encoders/test_embedding_requests.py",
    "gateway/openai/encoders/scores.py": "journeys/test_embeddings.py",
    "gateway/openai/encoders/embeddings.py": "journeys/test_embeddings.py",
    "gateway/openai/encoders/classify.py": "journeys/test_classify.py",
    "gateway/vector_directives.py": "gateway/test_directives.py",
    "gateway/responses/conversations.py": "journeys/test_conversations.py",
    "gateway/turn/job.py": "journeys/test_chat.py",
    "gateway/turn/cancel.py": "journeys/test_cancel.py",
    "gateway/turn/entry.py": "gateway/turn/test_opening.py",
    "gateway/turn/duplicates.py": "gateway/turn/test_opening.py",
    "domain/fleet/cold_start.py": "registry/test_cold_starts.py",
    "domain/registry/adapter.py": "domain/model/test_adapter.py",
    "domain/registry/price.py": "domain/billing/test_cost.py",
    "domain/billing/replica_use.py": "contracts/test_tenants_store.py",
    "domain/billing/usage_sum.py": "contracts/test_tenants_store.py",
    "domain/registry/golden.py": "control/test_golden.py",
    "domain/registry/tolerance.py": "domain/registry/test_steps.py",
    "domain/registry/warmth.py": "control/test_rollouts.py",
    "registry/facts.py": "gateway/admin/models/test_registry.py",
    "registry/fleet_facts.py": "gateway/admin/test_fleet.py",
    "registry/fleet_report.py": "gateway/admin/test_fleet.py",
    "registry/holders.py": "registry/test_follower.py",
    "registry/revisions.py": "registry/test_follower.py",
    "registry/last_asked.py": "registry/test_cold_starts.py",
    "registry/load_problems.py": "bootstrap/worker/test_registered_workers.py",
    "domain/names.py": "test_model_settings.py",
    "registry/observations.py": "registry/test_observing.py",
    "registry/rollout_facts.py": "gateway/admin/models/test_rollouts.py",
    "registry/rules.py": "registry/test_catalog.py",
    "registry/writer.py": "registry/test_follower.py",
    "weights/checking.py": "weights/test_cache.py",
    "weights/filling.py": "weights/test_cache.py",
    "weights/gguf_header.py": "weights/test_text.py",
    "weights/locks.py": "weights/test_processes.py",
    "weights/opening.py": "console/models/test_fetching.py",
    "weights/room.py": "weights/test_cache.py",
    "weights/threads.py": "runtime/test_file_threads.py",
    "weights/transfer.py": "weights/test_processes.py",
}
"""Modules that are tested through another: the test file that fails when they are wrong."""

NO_BEHAVIOUR = {
    "domain/tenants/access.py": "fields",
    "domain/file.py": "fields",
    "domain/grammar.py": "fields",
    "domain/registry/change.py": "fields",
    "domain/registry/model.py": "fields",
    "domain/registry/version.py": "fields, and an id made of two of them",
    "domain/moved.py": "fields",
    "domain/model/served_version.py": "fields",
    "gateway/offers/offer.py": "fields, and what an offer answers",
    "domain/content/item.py": "fields, and a join",
    "domain/job.py": "fields; what it derives is in domain/test_turn.py",
    "domain/overview.py": "fields",
    "domain/presence.py": "fields",
    "domain/sampling.py": "fields, and two questions about them",
    "domain/tenants/storage.py": "fields, and their sum",
    "domain/billing/usage.py": "fields, and their sum",
    "gateway/config.py": "settings",
    "gateway/batches/config.py": "settings",
    "gateway/grpc/config.py": "settings",
    "gateway/grpc/parts.py": "fields, put together",
    "gateway/http/schema.py": "what the API page says of a body; the page is generated and compared",
    "gateway/turn/ask.py": "fields",
    "weights/config.py": "settings",
}
"""Modules that decide nothing, each with what it holds."""


def modules() -> list[str]:
    return sorted(
        path.relative_to(SOURCE).as_posix()
        for package in PACKAGES
        for path in (SOURCE / package).rglob("*.py")
        if path.name != "__init__.py"
    )


def own_test(module: str) -> Path:
    path = TESTS / module
    return path.with_name(f"test_{path.name}")


@pytest.mark.parametrize("module", modules())
def test_a_module_has_a_test_of_its_name_or_says_where_it_is_tested(module: str) -> None:
    listed = [module in ELSEWHERE, module in NO_BEHAVIOUR, own_test(module).exists()]
    assert sum(listed) == 1, f"{own_test(module).relative_to(REPOSITORY)} is missing, or {module} is listed for nothing"


def test_what_is_listed_is_there() -> None:
    listed = {*ELSEWHERE, *NO_BEHAVIOUR}
    assert listed <= set(modules())
    assert {place for place in ELSEWHERE.values() if not (TESTS / place).exists()} == set()
